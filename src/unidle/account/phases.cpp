#include "unidle/account/phases.h"

namespace unidle::account {

PhaseTimes phase_times(const Timeline& timeline) {
  const TimeRanges whole({{timeline.begin_ns, timeline.end_ns}});
  const TimeRanges other = whole.minus(timeline.training).minus(timeline.pauses).minus(timeline.startup);
  const auto seconds = [](const TimeRanges& ranges) { return static_cast<double>(ranges.total_ns()) * 1e-9; };
  return {seconds(timeline.startup), seconds(timeline.training), seconds(timeline.validate),
          seconds(timeline.checkpoint), seconds(other)};
}

}  // namespace unidle::account
