#include "unidle/account/phases.h"

#include <algorithm>
#include <map>

#include "unidle/base/stats.h"

namespace unidle::account {

namespace {

double seconds(const TimeRanges& ranges) { return static_cast<double>(ranges.total_ns()) * 1e-9; }

double length_s(const TimeRange& range) { return static_cast<double>(range.end_ns - range.begin_ns) * 1e-9; }

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

Tests dry_runs(const Timeline& timeline) {
  Tests dry{timeline.dry_runs, 0, false};
  for (const TimeRange& range : timeline.validate.all()) {
    dry.seconds += timeline.is_dry_run(range.begin_ns) ? length_s(range) : 0;
  }
  return dry;
}

std::optional<Tests> tests_after_training(const Timeline& timeline) {
  constexpr double kLonger = 1.5;         // times the usual validation
  constexpr double kMuchLonger = 3;       // with a single one too: those that follow each other at once count as one
  std::map<std::size_t, Tests> by_steps;  // validations between two steps, by the number of steps before them
  for (const TimeRange& range : timeline.validate.all()) {
    if (timeline.is_dry_run(range.begin_ns)) {
      continue;  // a dry run
    }
    const auto after = std::upper_bound(timeline.steps.begin(), timeline.steps.end(), range.begin_ns,
                                        [](std::int64_t t_ns, const record::Step& step) { return t_ns < step.t_ns; });
    Tests& validated = by_steps[static_cast<std::size_t>(after - timeline.steps.begin())];
    ++validated.count;
    validated.seconds += length_s(range);
  }
  if (timeline.steps.empty() || by_steps.empty() || by_steps.rbegin()->first != timeline.steps.size()) {
    return std::nullopt;
  }
  const Tests last = by_steps.rbegin()->second;
  if (by_steps.size() == 1) {
    return last;
  }
  by_steps.erase(timeline.steps.size());
  std::vector<double> counts;
  std::vector<double> lengths;
  for (const auto& [steps, validated] : by_steps) {
    counts.push_back(static_cast<double>(validated.count));
    lengths.push_back(validated.seconds);
  }
  const auto more = last.count - static_cast<std::int64_t>(median(counts));
  const double usual_s = median(lengths);
  if (last.seconds < (more > 0 ? kLonger : kMuchLonger) * usual_s) {
    return std::nullopt;
  }
  return Tests{std::max<std::int64_t>(1, more), last.seconds - usual_s, true};
}

}  // namespace unidle::account
