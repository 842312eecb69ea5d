// Small statistics: order statistics and bootstrap intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unidle {

double mean(std::span<const double> values);
/// Sample standard deviation; 0 for fewer than two values.
double standard_deviation(std::span<const double> values);
/// Linear interpolation between order statistics (type 7, as numpy and R default). REQUIRES: not empty, 0 <= q <= 1.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

struct Interval {
  double low;
  double high;
};

/// Percentile-bootstrap interval of the mean (Efron 1979), seeded: the same input gives the same interval.
Interval bootstrap_mean(std::span<const double> values, double confidence = 0.95, int rounds = 2000,
                        std::uint64_t seed = 1);

/// The same of the median.
Interval bootstrap_median(std::span<const double> values, double confidence = 0.95, int rounds = 2000,
                          std::uint64_t seed = 1);

/// Interval of mean(b)/mean(a), resampling both sides.
Interval bootstrap_ratio(std::span<const double> a, std::span<const double> b, double confidence = 0.95,
                         int rounds = 2000, std::uint64_t seed = 1);

/// The means of consecutive blocks of `block` values; a rest shorter than a block is dropped. Step times are
/// correlated, so intervals are taken over blocks.
std::vector<double> block_means(std::span<const double> values, std::size_t block);

}  // namespace unidle
