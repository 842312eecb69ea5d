// Ranges of a trace's time, gathered into the sets that all modules share. Times of a trace are in microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/base/time_ranges.h"

namespace unidle::trace::detail {

/// In microseconds.
struct Span {
  double begin = 0;
  double end = 0;
};

/// Rounded to whole nanoseconds; times beyond a century are cut off.
std::int64_t to_ns(double us);
double to_us(std::int64_t ns);
inline double total_us(const TimeRanges& ranges) { return to_us(ranges.total_ns()); }
inline TimeRange to_range(const Span& span) { return {to_ns(span.begin), to_ns(span.end)}; }
inline Span to_span(const TimeRange& range) { return {to_us(range.begin_ns), to_us(range.end_ns)}; }

inline TimeRanges intersection(const TimeRanges& a, const TimeRanges& b) { return a.minus(a.minus(b)); }

/// Accepts ranges in any order and keeps their union. Joins them whenever it has doubled in size, so that memory
/// follows the number of gaps, not of ranges.
class GatheredRanges {
 public:
  /// Ignores empty and backward ranges.
  void add(TimeRange range);
  void add(const TimeRanges& ranges);
  const TimeRanges& joined();

 private:
  TimeRanges joined_;
  std::vector<TimeRange> added_;  // not joined yet
  std::size_t join_at_ = std::size_t{1} << 16U;
};

}  // namespace unidle::trace::detail
