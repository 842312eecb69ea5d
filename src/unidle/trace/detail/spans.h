// Sets of time spans: union, overlap, difference.
#pragma once

#include <vector>

namespace unidle::trace::detail {

struct Span {
  double begin = 0;
  double end = 0;
};

/// Accepts spans in any order and keeps their union. Sorts and joins whenever it has doubled in size, so that memory
/// follows the number of gaps rather than of spans.
class SpanSet {
 public:
  /// Ignores empty and backward spans.
  void add(double begin, double end);
  /// Disjoint spans, sorted by time.
  const std::vector<Span>& joined();
  double total();
  /// The length of [begin, end] that is covered.
  double covered(double begin, double end);
  /// Whether `at` lies in a span, ends included.
  bool holds(double at);
  SpanSet minus(SpanSet& other);
  SpanSet within(SpanSet& other);
  bool empty() const { return spans_.empty(); }

 private:
  void join();

  std::vector<Span> spans_;
  std::size_t join_at_ = std::size_t{1} << 16U;
  bool joined_ = true;
};

}  // namespace unidle::trace::detail
