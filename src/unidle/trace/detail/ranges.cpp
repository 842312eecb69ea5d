#include "unidle/trace/detail/ranges.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace unidle::trace::detail {

namespace {
constexpr double kCentury_us = 36525 * 86400e6;
}  // namespace

std::int64_t to_ns(double us) {
  // Not in one product: the nanoseconds since 1970 are more than a double can tell apart.
  const double whole = std::floor(std::clamp(us, -kCentury_us, kCentury_us));
  return 1000 * std::llround(whole) + std::llround(1000 * std::clamp(us - whole, 0.0, 1.0));
}

double to_us(std::int64_t ns) {
  const std::int64_t whole = ns / 1000;
  return static_cast<double>(whole) + static_cast<double>(ns % 1000) / 1000;
}

void GatheredRanges::add(TimeRange range) {
  if (range.end_ns <= range.begin_ns) {
    return;
  }
  added_.push_back(range);
  if (added_.size() >= join_at_) {
    join_at_ = std::max(join_at_, joined().all().size());
  }
}

void GatheredRanges::add(const TimeRanges& ranges) {
  for (const TimeRange& range : ranges.all()) {
    add(range);
  }
}

const TimeRanges& GatheredRanges::joined() {
  if (!added_.empty()) {
    joined_ = joined_.plus(TimeRanges(std::exchange(added_, {})));
  }
  return joined_;
}

}  // namespace unidle::trace::detail
