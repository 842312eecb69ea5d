#include "unidle/diagnose/detail/timeline_findings.h"

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"

namespace unidle::diagnose::detail {

const DeviceTimeline* only_timeline(const Context& context) {
  const auto& timeline = context.signals.timeline;
  return timeline && timeline->alone ? &*timeline : nullptr;
}

Finding of_idle(const Context& context, const Policy& policy, double share) {
  Finding finding = of_share(share, policy);
  finding.evidence.push_back(context.say("in the profiled steps the device idles {} of the time, {} for this reason",
                                         format_share(context.signals.timeline->idle), format_share(share)));
  return finding;
}

void add_caveats(const Context& context, Finding& finding) {
  const DeviceTimeline& timeline = *context.signals.timeline;
  if (!timeline.host_in.empty()) {
    finding.evidence.push_back(context.say("during the longest gap, {}, the host was in {}",
                                           format_seconds(timeline.longest_gap_s), timeline.host_in));
  }
  if (timeline.python_frames) {
    finding.evidence.emplace_back(
        "the trace records every Python function, which slows the host down: a trace with with_stack=False shows by "
        "how much");
  }
}

}  // namespace unidle::diagnose::detail
