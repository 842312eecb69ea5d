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
      "what ended these times was launched before they began: the device waited for another stream, another rank or "
      "work that the trace does not show");
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
          "What the device does next was launched before it became idle, and it did not begin: it waited for "
          "an event of another stream, for another rank, for a copy, or, between many short kernels, for its "
          "own scheduler. The host is not what it waits for.",
      .thresholds =
          "Idle time of the device that ends with work that was queued before, and of a launch what goes "
          "beyond 100 us on the way to the device: from warning_share (10 %) of the wall time; critical from "
          "critical_share (30 %).",
      .needs = "a profiler's trace or window with the device's kernels and the host's calls",
      .proposes = "look at what the streams wait for at the longest gaps (unidle trace FILE, Perfetto)",
      .evaluate = evaluate_queued_work_waits,
  };
  return kRule;
}

}  // namespace unidle::diagnose::rules
