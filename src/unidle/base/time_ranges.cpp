#include "unidle/base/time_ranges.h"

#include <algorithm>
#include <utility>

namespace unidle {

TimeRanges::TimeRanges(std::vector<TimeRange> any) {
  std::erase_if(any, [](const TimeRange& one) { return one.end_ns <= one.begin_ns; });
  const auto earlier = [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; };
  if (!std::is_sorted(any.begin(), any.end(), earlier)) {  // steps are already in order
    std::sort(any.begin(), any.end(), earlier);
  }
  for (const TimeRange& one : any) {
    if (!all_.empty() && one.begin_ns <= all_.back().end_ns) {
      all_.back().end_ns = std::max(all_.back().end_ns, one.end_ns);
    } else {
      all_.push_back(one);
    }
  }
}

std::int64_t TimeRanges::total_ns() const {
  std::int64_t total = 0;
  for (const TimeRange& one : all_) {
    total += one.end_ns - one.begin_ns;
  }
  return total;
}

TimeRanges TimeRanges::minus(const TimeRanges& other) const {
  TimeRanges left;
  auto cut = other.all_.begin();
  for (TimeRange one : all_) {
    while (cut != other.all_.end() && cut->end_ns <= one.begin_ns) {
      ++cut;
    }
    for (auto at = cut; at != other.all_.end() && at->begin_ns < one.end_ns; ++at) {
      if (at->begin_ns > one.begin_ns) {
        left.all_.push_back({one.begin_ns, at->begin_ns});
      }
      one.begin_ns = std::max(one.begin_ns, at->end_ns);
    }
    if (one.begin_ns < one.end_ns) {
      left.all_.push_back(one);
    }
  }
  return left;
}

TimeRanges TimeRanges::plus(const TimeRanges& other) const {
  std::vector<TimeRange> both = all_;
  both.insert(both.end(), other.all_.begin(), other.all_.end());
  return TimeRanges(std::move(both));
}

std::int64_t TimeRanges::overlap_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (end_ns <= begin_ns) {
    return 0;
  }
  std::int64_t total = 0;
  auto at = std::lower_bound(all_.begin(), all_.end(), begin_ns,
                             [](const TimeRange& one, std::int64_t t) { return one.end_ns <= t; });
  for (; at != all_.end() && at->begin_ns < end_ns; ++at) {
    total += std::min(at->end_ns, end_ns) - std::max(at->begin_ns, begin_ns);
  }
  return total;
}

}  // namespace unidle
