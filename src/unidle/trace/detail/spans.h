// Sets of time spans: union, overlap, difference.
#pragma once

#include <vector>

namespace unidle::trace::detail {

struct Span {
  double begin = 0;
  double end = 0;
};

/// Adds spans in any order and keeps what they cover. Sorts and joins whenever it has grown to twice its size, so that
/// memory follows the number of gaps rather than of spans.
class SpanSet {
 public:
  /// Empty and backward spans are passed over.
  void add(double begin, double end);
  /// Disjoint, by time.
  const std::vector<Span>& joined();
  double total();
  /// What of [begin, end] is covered.
  double covered(double begin, double end);
  /// Whether `at` lies in one of them, its ends included.
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
