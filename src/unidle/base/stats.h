// Small statistics: means, order statistics and the bootstrap.
#pragma once

#include <cstddef>
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

/// Quantile 0.975 of Student's t distribution: how many standard errors a two-sided 95 % interval reaches to each side.
/// REQUIRES: degrees > 0.
double student_t(std::size_t degrees);

/// A 95 % confidence interval.
struct Interval {
  double low;
  double high;
};

constexpr int kBootstrapDraws = 2000;

/// The middle 95 % of bootstrap draws (percentile method, Efron 1979). REQUIRES: not empty.
Interval percentile_interval(std::span<const double> draws);

/// The confidence interval of a statistic; `draw` computes it for one resample. Uses a fixed seed: equal draws give
/// equal intervals.
Interval bootstrap(const std::function<double(std::mt19937_64&)>& draw);

}  // namespace unidle
