#include "unidle/monitor/distribution.h"

#include <algorithm>

#include "unidle/base/stats.h"

namespace unidle::monitor {

namespace {

constexpr std::size_t kMost = 16384;

}  // namespace

void Distribution::add(double value) {
  peak_ = count_ == 0 ? value : std::max(peak_, value);
  sum_ += value;
  if (count_ % stride_ == 0) {
    kept_.push_back(value);
  }
  ++count_;
  if (kept_.size() >= kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      kept_[i] = kept_[2 * i];
    }
    kept_.resize(kMost / 2);
    stride_ *= 2;
  }
}

std::optional<double> Distribution::mean() const {
  return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
}

std::optional<double> Distribution::peak() const { return count_ > 0 ? std::optional(peak_) : std::nullopt; }

std::optional<double> Distribution::quantile(double q) const {
  return kept_.empty() ? std::nullopt : std::optional(unidle::quantile(kept_, q));
}

}  // namespace unidle::monitor
