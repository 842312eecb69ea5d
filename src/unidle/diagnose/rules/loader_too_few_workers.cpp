#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/wait_for_batch.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Finding workers_finding(const Context& context, const Policy& policy, double workers) {
  const Signals& signals = context.signals;
  const double step_s = signals.step_s.value_or(0);
  const double work_s = *signals.loader_busy * workers * step_s;  // loader work per step
  Finding finding = detail::of_share(*context.steady_input, policy);
  if (const auto best = overlapped_step_s(context, work_s)) {
    finding.speedup_bound = bound_of_run(context, step_s, *best);
  }
  finding.where = detail::where_loader(context, "loader.workers");
  finding.evidence = {
      context.say("{} of each step is waiting for input ({} of the wall time)", format_share(signals.step->input),
                  format_share(*context.input)),
      context.say("{:.0f} workers are busy {} of the time", workers, format_share(*signals.loader_busy)),
      detail::cpu_use_in_words(context, policy),
  };
  detail::add_stages(context, finding);
  detail::add_collate(context, policy, finding);
  const double free_cpus = std::max(1.0, std::floor(detail::free_cpus(context).value_or(1) + 0.25));
  const double free = workers_on(context, free_cpus, policy);
  const double wanted = context.rest_s && *context.rest_s > 0 ? std::ceil(work_s / *context.rest_s) : workers + free;
  finding.fixes.push_back(detail::make_fix(context, "loader.workers",
                                           std::llround(std::clamp(wanted, workers + 1, workers + free)),
                                           "use the free CPUs for more workers"));
  return finding;
}

Evaluation evaluate_loader_too_few_workers(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  const auto workers = context.workers;
  if (!workers) {
    return Missing{context.say("the loader's worker count in the live program")};
  }
  if (*workers < 1 || detail::iterates_for_each_batch(signals, policy)) {
    return Nothing{};
  }
  if (!context.input) {
    return Missing{context.no_steps};
  }
  if (*context.steady_input < policy.warning_share) {
    return Nothing{};
  }
  if (!signals.loader_busy) {
    return Missing{context.say("how busy the loader's workers are")};
  }
  const auto free = detail::free_cpus(context);
  if (!free) {
    return Missing{context.say("the CPUs that the run may use and did use")};
  }
  if (*signals.loader_busy < policy.workers_busy || *free < policy.free_cpus) {
    return Nothing{};
  }
  return workers_finding(context, policy, static_cast<double>(*workers));
}

}  // namespace

const Rule& loader_too_few_workers() {
  static const Rule kRule{
      .id = "loader-too-few-workers",
      .verdict = Verdict::kInputBound,
      .title = "Too few loader workers",
      .topic = "worker count",
      .explanation =
          "The step waits for batches, every worker is busy all the time, and CPUs that this run may use are idle. "
          "More workers make batches faster, up to the point where the CPUs are full.",
      .thresholds =
          "Input wait from warning_share (10 %) of the wall time, workers busy from workers_busy (85 %), at least "
          "free_cpus (0.75) CPUs free; critical from critical_share (30 %).",
      .needs =
          "the effective loader.workers, step times with the wait for input, sample times of the workers, CPUs "
          "allowed and used",
      .proposes = "loader.workers: enough to hide the work, no more than the free CPUs carry",
      .evaluate = evaluate_loader_too_few_workers,
      .counts = Counts::kHostTime,
      .waits = "for data from too few workers",
      .shows = Symptom::kWorkersBehind,
      .explains = {Symptom::kNoBatch},
      .about_samples = true,
      .costly_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
