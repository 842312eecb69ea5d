// Sets of time ranges.
#pragma once

#include <cstdint>
#include <vector>

namespace unidle {

struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Sorted, disjoint, non-empty ranges. All operations take linear time, except overlap_ns().
class TimeRanges {
 public:
  TimeRanges() = default;
  /// Accepts ranges in any order, overlapping or empty.
  explicit TimeRanges(std::vector<TimeRange> any);

  const std::vector<TimeRange>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  std::int64_t total_ns() const;
  TimeRanges minus(const TimeRanges& other) const;
  TimeRanges plus(const TimeRanges& other) const;
  /// Length of the part of [begin, end) that is in the set; logarithmic time.
  std::int64_t overlap_ns(std::int64_t begin_ns, std::int64_t end_ns) const;
  bool contains(std::int64_t t_ns) const { return overlap_ns(t_ns, t_ns + 1) > 0; }

 private:
  std::vector<TimeRange> all_;
};

}  // namespace unidle
