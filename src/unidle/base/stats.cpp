#include "unidle/base/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "unidle/base/error.h"

namespace unidle {

namespace {

double resampled_mean(std::span<const double> values, std::mt19937_64& random) {
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[pick(random)];
  }
  return sum / static_cast<double>(values.size());
}

Interval percentile_interval(const std::vector<double>& draws, double confidence) {
  const double tail = (1 - confidence) / 2;
  return {quantile(draws, tail), quantile(draws, 1 - tail)};
}

}  // namespace

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

Interval bootstrap_mean(std::span<const double> values, double confidence, int rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> draws(static_cast<std::size_t>(rounds));
  for (double& draw : draws) {
    draw = resampled_mean(values, random);
  }
  return percentile_interval(draws, confidence);
}

Interval bootstrap_median(std::span<const double> values, double confidence, int rounds, std::uint64_t seed) {
  if (values.empty()) {
    throw Error(ErrorCode::kInternal, "bootstrap_median", "no values");
  }
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  std::vector<double> drawn(values.size());
  std::vector<double> draws(static_cast<std::size_t>(rounds));
  for (double& draw : draws) {
    std::generate(drawn.begin(), drawn.end(), [&] { return values[pick(random)]; });
    draw = median(drawn);
  }
  return percentile_interval(draws, confidence);
}

Interval bootstrap_ratio(std::span<const double> a, std::span<const double> b, double confidence, int rounds,
                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> draws(static_cast<std::size_t>(rounds));
  for (double& draw : draws) {
    draw = resampled_mean(b, random) / resampled_mean(a, random);
  }
  return percentile_interval(draws, confidence);
}

std::vector<double> block_means(std::span<const double> values, std::size_t block) {
  std::vector<double> means;
  for (std::size_t start = 0; start + block <= values.size(); start += block) {
    means.push_back(mean(values.subspan(start, block)));
  }
  return means;
}

}  // namespace unidle
