#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_loader_respawn(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.workers) {
    return Missing{"the loader's worker count in the live program"};
  }
  const auto persistent = detail::effective_on(context, "loader.persistent_workers");
  const bool kept = signals.loader && signals.loader->persistent_workers ? *signals.loader->persistent_workers
                                                                         : persistent.value_or(false);
  if (*context.workers < 1 || kept) {
    return Nothing{};
  }
  if (!signals.loader || !signals.loader->starts || !signals.loader->start_wait_s) {
    return Missing{"how long training waits for workers to start"};
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  const auto starts = static_cast<double>(*signals.loader->starts);
  const double later = starts < 2 ? 0 : 1 - 1 / starts;  // one start is always needed
  // Where starts are most of what training waits for, they are what validation waits for.
  const double validation = context.respawn >= policy.mostly * *context.input ? context.validation_wait : 0;
  const double share = (context.respawn + validation) * later;
  if (share < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.speedup_bound = amdahl(context.respawn * later);  // validation is added to that of all such findings
  finding.where = detail::where_loader(context, "loader.persistent_workers");
  finding.evidence = {
      context.say("{} workers were started {} times", *context.workers, *signals.loader->starts),
      context.say("training waited {} for each start, {} of the wall time in all",
                  format_seconds(*signals.loader->start_wait_s / starts), format_share(context.respawn)),
  };
  finding.fixes.push_back(detail::make_fix(context, "loader.persistent_workers", true,
                                           "keep the workers, and the loader itself, from epoch to epoch"));
  return finding;
}

}  // namespace

const Rule& loader_respawn() {
  static const Rule kRule{
      .id = "loader-respawn",
      .verdict = Verdict::kInputBound,
      .title = "Workers are started again and again",
      .topic = "worker starts",
      .explanation =
          "A loader without persistent workers ends them with each iterator, which is usually an epoch, and starts new "
          "ones for the next: processes are made, the dataset is copied to them, files are opened, and the first batch "
          "is made from cold. With short epochs that is paid every few seconds.",
      .thresholds =
          "How long training and validation wait for workers to start, without the first start, from warning_share (10 "
          "%) of the wall time; critical from critical_share (30 %).",
      .needs =
          "the effective loader.workers and loader.persistent_workers, how often workers were started and how long "
          "training waited for it",
      .proposes = "loader.persistent_workers",
      .evaluate = evaluate_loader_respawn,
      .counts = Counts::kHostTime,
      .waits = "for workers that are started again and again",
      .shows = Symptom::kWorkersRestarted,
      .explains = {Symptom::kWorkersBehind, Symptom::kBatchesInBursts, Symptom::kNoBatch},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
