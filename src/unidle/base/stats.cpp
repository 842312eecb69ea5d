#include "unidle/base/stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "unidle/base/error.h"

namespace unidle {

double mean(std::span<const double> values) {
  if (values.empty()) {
    throw Error(ErrorCode::kInternal, "mean", "no values");
  }
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) {
    return 0;
  }
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - centre) * (value - centre);
  }
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double quantile(std::span<const double> values, double q) {
  if (values.empty()) {
    throw Error(ErrorCode::kInternal, "quantile", "no values");
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

double student_t(std::size_t degrees) {
  // Up to 9 degrees of freedom from a table (NIST/SEMATECH e-Handbook, 1.3.6.7.2), beyond that by the expansion 26.7.5
  // of Abramowitz and Stegun, whose error is below 0.2 %.
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  constexpr double kNormal = 1.959964;
  constexpr double kCube = kNormal * kNormal * kNormal;
  if (degrees == 0) {
    throw Error(ErrorCode::kInternal, "student_t", "no degrees of freedom");
  }
  if (degrees <= kTable.size()) {
    return kTable.at(degrees - 1);
  }
  const auto n = static_cast<double>(degrees);
  return kNormal + (kCube + kNormal) / (4 * n) +
         (5 * kCube * kNormal * kNormal + 16 * kCube + 3 * kNormal) / (96 * n * n);
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

Interval percentile_interval(std::span<const double> draws) { return {quantile(draws, 0.025), quantile(draws, 0.975)}; }

Interval bootstrap(const std::function<double(std::mt19937_64&)>& draw) {
  std::mt19937_64 random(1);
  std::vector<double> draws(kBootstrapDraws);
  std::generate(draws.begin(), draws.end(), [&] { return draw(random); });
  return percentile_interval(draws);
}

}  // namespace unidle
