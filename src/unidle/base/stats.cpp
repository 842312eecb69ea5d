#include "unidle/base/stats.h"

#include <algorithm>
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

double median(std::span<const double> values) { return quantile(values, 0.5); }

Interval percentile_interval(std::span<const double> draws) { return {quantile(draws, 0.025), quantile(draws, 0.975)}; }

Interval bootstrap(const std::function<double(std::mt19937_64&)>& draw) {
  std::mt19937_64 random(1);
  std::vector<double> draws(kBootstrapDraws);
  std::generate(draws.begin(), draws.end(), [&] { return draw(random); });
  return percentile_interval(draws);
}

}  // namespace unidle
