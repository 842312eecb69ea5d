// Small statistics: means, order statistics and the bootstrap.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

namespace unidle {

double mean(std::span<const double> values);
/// Sample standard deviation; 0 for fewer than two values.
double standard_deviation(std::span<const double> values);
/// Linear interpolation between order statistics (type 7, as numpy and R default). REQUIRES: not empty, 0 <= q <= 1.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

/// What lies between, with a confidence of 95 %.
struct Interval {
  double low;
  double high;
};

constexpr int kBootstrapDraws = 2000;

/// The middle 95 % of the draws of a bootstrap (percentile method, Efron 1979). REQUIRES: not empty.
Interval percentile_interval(std::span<const double> draws);

/// The interval of a statistic; `draw` computes it of one resample. Seeded: the same draws give the same interval.
Interval bootstrap(const std::function<double(std::mt19937_64&)>& draw);

}  // namespace unidle
