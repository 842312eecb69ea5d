#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_idle_for_input(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  if (timeline->input < policy.warning_share || context.workers == 0) {
    return Nothing{};  // without workers the loader makes samples in the loop, which has a rule of its own
  }
  Finding finding = detail::of_idle(context, policy, timeline->input);
  finding.evidence.emplace_back(
      "meanwhile the loop waits for its next batch; unidle run shows what the loader's processes spend their time on");
  detail::add_caveats(context, finding);
  finding.fixes.push_back(
      detail::make_fix(context, "loader.workers", {}, "use more workers, or do less work for each sample"));
  return finding;
}

}  // namespace

const Rule& idle_for_input() {
  static const Rule kRule{
      .id = "idle-for-input",
      .verdict = Verdict::kInputBound,
      .title = "The device idles while the loop waits for a batch",
      .topic = "the wait for batches",
      .explanation =
          "The loop asks its loader for a batch that is not ready, and the device has finished all queued work. A "
          "trace of the training process does not show why, because the loader's workers are other processes.",
      .thresholds =
          "Idle time of the device while the thread that launches next fetches a batch from its loader: from "
          "warning_share (10 %) of the wall time; critical from critical_share (30 %). Silent where the loader has no "
          "workers.",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes = "loader.workers; less work for each sample",
      .evaluate = evaluate_idle_for_input,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} idles {share} of the time while the loop waits for a batch",
      .shows = Symptom::kNoBatch,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
