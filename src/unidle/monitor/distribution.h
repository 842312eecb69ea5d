// The distribution of a reading over a session of any length, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace unidle::monitor {

/// Mean and peak are exact. Quantiles are over all values up to 16384 of them; beyond that over every second, fourth,
/// ... value, which for a session at even intervals keeps the shape.
class Distribution {
 public:
  void add(double value);

  std::uint64_t count() const { return count_; }
  std::optional<double> mean() const;
  std::optional<double> peak() const;
  /// 0 <= q <= 1.
  std::optional<double> quantile(double q) const;

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double peak_ = 0;
  std::uint64_t stride_ = 1;
  std::vector<double> kept_;
};

}  // namespace unidle::monitor
