#include "unidle/account/phases.h"

namespace unidle::account {

namespace {

double seconds(const TimeRanges& ranges) { return static_cast<double>(ranges.total_ns()) * 1e-9; }

}  // namespace

PhaseTimes phase_times(const Timeline& timeline) {
  const TimeRanges whole({{timeline.begin_ns, timeline.end_ns}});
  const TimeRanges other = whole.minus(timeline.training).minus(timeline.pauses).minus(timeline.startup);
  return {seconds(timeline.startup), seconds(timeline.training), seconds(timeline.validate),
          seconds(timeline.checkpoint), seconds(other)};
}

double after_training_s(const Timeline& timeline) {
  if (timeline.training.empty()) {
    return 0;
  }
  const TimeRanges rest({{timeline.training.all().back().end_ns, timeline.end_ns}});
  return seconds(rest.minus(timeline.pauses));
}

}  // namespace unidle::account
