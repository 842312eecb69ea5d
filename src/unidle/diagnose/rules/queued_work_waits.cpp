#include "unidle/diagnose/detail/timeline_findings.h"
#include "unidle/diagnose/rule.h"

namespace unidle::diagnose::rules {

namespace {

Evaluation evaluate_queued_work_waits(const Context& context, const Policy& policy) {
  const auto& timeline = context.signals.timeline;
  if (!timeline) {
    return Missing{detail::kTimelineMissing};
  }
  if (timeline->queued < policy.warning_share) {
    return Nothing{};
  }
  Finding finding = detail::of_idle(context, policy, timeline->queued);
  finding.evidence.emplace_back(
      "the work that ended these gaps was launched before they began: the device waited for another stream, another "
      "rank or work that the trace does not show");
  detail::add_caveats(context, finding);
  return finding;
}

}  // namespace

const Rule& queued_work_waits() {
  static const Rule kRule{
      .id = "queued-work-waits",
      .verdict = Verdict::kSyncBound,
      .title = "The device idles although work is queued",
      .topic = "work that is queued",
      .explanation =
          "The device's next work was launched before the device became idle, but did not start. It waited for an "
          "event of another stream, for another rank, for a copy or, between many short kernels, for the device's own "
          "scheduler. The host is not the cause.",
      .thresholds =
          "Idle time of the device before work that was already queued, and launch latency beyond 100 us: from "
          "warning_share (10 %) of the wall time; critical from critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes = "look at what the streams wait for at the longest gaps (unidle trace FILE, Perfetto)",
      .evaluate = evaluate_queued_work_waits,
      .counts = Counts::kDeviceTime,
      .sentence = "Your {device} idles {share} of the time although work is queued",
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
