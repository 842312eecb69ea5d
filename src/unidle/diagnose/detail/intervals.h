// Sets of stretches of time.
#pragma once

#include <cstdint>
#include <vector>

namespace unidle::diagnose::detail {

struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Sorted, disjoint, none empty. All operations are linear in the number of stretches, but for overlap_ns().
class Intervals {
 public:
  Intervals() = default;
  /// Any order, overlapping or empty ones welcome.
  explicit Intervals(std::vector<Interval> any);

  const std::vector<Interval>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  std::int64_t total_ns() const;
  Intervals minus(const Intervals& other) const;
  Intervals plus(const Intervals& other) const;
  /// How much of [begin, end) is in the set; logarithmic.
  std::int64_t overlap_ns(std::int64_t begin_ns, std::int64_t end_ns) const;
  bool contains(std::int64_t t_ns) const { return overlap_ns(t_ns, t_ns + 1) > 0; }

 private:
  std::vector<Interval> all_;
};

}  // namespace unidle::diagnose::detail
