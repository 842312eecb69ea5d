// The distribution of a reading over a session of any length, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace unidle::monitor {

/// Mean and peak are exact. Quantiles are exact up to 16384 values; beyond that they use every second, fourth, ...
/// value, which keeps the shape when values come at even intervals.
class Distribution {
 public:
  void add(double value);

  std::uint64_t count() const { return count_; }
  std::optional<double> mean() const;
  std::optional<double> peak() const;
  /// Requires 0 <= q <= 1.
  std::optional<double> quantile(double q) const;

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double peak_ = 0;
  std::uint64_t stride_ = 1;
  std::vector<double> kept_;
};

}  // namespace unidle::monitor
