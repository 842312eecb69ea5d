#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_loader_shallow_prefetch(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!context.workers) {
    return Missing{"the loader's worker count in the live program"};
  }
  if (*context.workers < 1) {
    return Nothing{};
  }
  if (!context.steady_input) {
    return Missing{context.no_steps};
  }
  if (*context.steady_input < policy.warning_share) {
    return Nothing{};
  }
  if (!signals.loader_busy || !signals.input_bursts) {
    return Missing{signals.loader_busy ? "how the waits for input are spread" : "how busy the loader's workers are"};
  }
  const auto depth = signals.loader && signals.loader->prefetch_factor
                         ? signals.loader->prefetch_factor
                         : detail::effective_int(context, "loader.prefetch_factor");
  const double share = *context.steady_input * *signals.input_bursts;
  const bool bursts = *signals.input_bursts >= policy.bursts && *signals.loader_busy < policy.workers_busy;
  if (!bursts || share < policy.warning_share || depth.value_or(2) >= policy.deep_prefetch) {
    return Nothing{};
  }
  Finding finding = detail::of_share(share, policy);
  finding.where = detail::where_loader(context, "loader.prefetch_factor");
  finding.evidence = {
      context.say("a tenth of the steps does {} of the waiting for input ({} of the wall time in all)",
                  format_share(*signals.input_bursts), format_share(*context.steady_input)),
      context.say("the {} workers are busy only {} of the time, so they make enough batches on average",
                  *context.workers, format_share(*signals.loader_busy)),
  };
  const std::int64_t deeper = std::min(policy.deep_prefetch, 4 * depth.value_or(2));
  finding.fixes.push_back(
      detail::make_fix(context, "loader.prefetch_factor", deeper, "keep more batches ready, which costs their memory"));
  return finding;
}

}  // namespace

const Rule& loader_shallow_prefetch() {
  static const Rule kRule{
      .id = "loader-shallow-prefetch",
      .verdict = Verdict::kInputBound,
      .title = "The queue of batches is too shallow for the bursts",
      .topic = "prefetch depth",
      .explanation =
          "On average the workers make batches faster than the step uses them, yet now and then the queue is empty: a "
          "few slow batches, or a step that is faster than usual, drain it. More batches in the queue carry the step "
          "over such moments.",
      .thresholds =
          "A tenth of the steps has at least bursts (50 %) of the wait, workers busy below workers_busy (85 %), the "
          "wait in those steps from warning_share (10 %) of the wall time, prefetch below deep_prefetch (16).",
      .needs =
          "the effective loader.workers and loader.prefetch_factor, step times with the wait for input, how busy the "
          "workers are",
      .proposes = "loader.prefetch_factor",
      .evaluate = evaluate_loader_shallow_prefetch,
      .counts = Counts::kHostTime,
      .waits = "for batches that come in bursts",
      .shows = Symptom::kBatchesInBursts,
      .explains = {Symptom::kNoBatch},
      .about_samples = true,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
