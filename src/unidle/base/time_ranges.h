// Sets of ranges of time.
#pragma once

#include <cstdint>
#include <vector>

namespace unidle {

struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Sorted, disjoint, none empty. All operations are linear in the number of ranges, but for overlap_ns().
class TimeRanges {
 public:
  TimeRanges() = default;
  /// Any order, overlapping or empty ones welcome.
  explicit TimeRanges(std::vector<TimeRange> any);

  const std::vector<TimeRange>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  std::int64_t total_ns() const;
  TimeRanges minus(const TimeRanges& other) const;
  TimeRanges plus(const TimeRanges& other) const;
  /// How much of [begin, end) is in the set; logarithmic.
  std::int64_t overlap_ns(std::int64_t begin_ns, std::int64_t end_ns) const;
  bool contains(std::int64_t t_ns) const { return overlap_ns(t_ns, t_ns + 1) > 0; }

 private:
  std::vector<TimeRange> all_;
};

}  // namespace unidle
