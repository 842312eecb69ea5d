#include "unidle/report/page/recorded_search.h"

#include <cmath>

namespace unidle::report {

tune::Recorded recorded_in(const account::RunData& run) {
  return tune::recorded(run.meta_value("changes"), run.meta_value("trials"), run.meta_value("verification"));
}

bool is_rate(double value) { return std::isfinite(value) && value > 0; }

std::optional<Interval> interval_shown(const tune::Verification& found) {
  const bool known = found.ratios().size() >= tune::kPairsOfAnInterval && std::isfinite(found.interval.high);
  return known ? std::optional(found.interval) : std::nullopt;
}

bool proven(const tune::Recorded& recorded) {
  const auto& found = recorded.verification;
  return found && found->shown && is_rate(found->ratio);
}

std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor) {
  return interval ? std::optional(Interval{interval->low * factor, interval->high * factor}) : std::nullopt;
}

}  // namespace unidle::report
