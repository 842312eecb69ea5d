#include "unidle/trace/detail/spans.h"

#include <algorithm>

namespace unidle::trace::detail {

void SpanSet::add(double begin, double end) {
  if (!(end > begin)) {
    return;
  }
  spans_.push_back({begin, end});
  joined_ = false;
  if (spans_.size() >= join_at_) {
    join();
    join_at_ = std::max(join_at_, 2 * spans_.size());
  }
}

void SpanSet::join() {
  if (joined_) {
    return;
  }
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Span& span : spans_) {
    if (kept > 0 && span.begin <= spans_[kept - 1].end) {
      spans_[kept - 1].end = std::max(spans_[kept - 1].end, span.end);
    } else {
      spans_[kept++] = span;
    }
  }
  spans_.resize(kept);
  joined_ = true;
}

const std::vector<Span>& SpanSet::joined() {
  join();
  return spans_;
}

double SpanSet::total() {
  double sum = 0;
  for (const Span& span : joined()) {
    sum += span.end - span.begin;
  }
  return sum;
}

double SpanSet::covered(double begin, double end) {
  join();
  double sum = 0;
  auto span =
      std::lower_bound(spans_.begin(), spans_.end(), begin, [](const Span& one, double at) { return one.end <= at; });
  for (; span != spans_.end() && span->begin < end; ++span) {
    sum += std::min(span->end, end) - std::max(span->begin, begin);
  }
  return sum;
}

bool SpanSet::holds(double at) {
  join();
  const auto span =
      std::lower_bound(spans_.begin(), spans_.end(), at, [](const Span& one, double time) { return one.end < time; });
  return span != spans_.end() && span->begin <= at;
}

SpanSet SpanSet::within(SpanSet& other) {
  SpanSet result;
  const std::vector<Span>& a = joined();
  const std::vector<Span>& b = other.joined();
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    result.add(std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return result;
}

SpanSet SpanSet::minus(SpanSet& other) {
  SpanSet result;
  const std::vector<Span>& b = other.joined();
  std::size_t j = 0;
  for (const Span& span : joined()) {
    double at = span.begin;
    while (j > 0 && b[j - 1].end > at) {
      --j;
    }
    for (; j < b.size() && b[j].begin < span.end; ++j) {
      if (b[j].end <= at) {
        continue;
      }
      result.add(at, b[j].begin);
      at = std::max(at, b[j].end);
    }
    result.add(at, span.end);
  }
  return result;
}

}  // namespace unidle::trace::detail
