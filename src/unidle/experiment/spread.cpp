#include "unidle/experiment/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "unidle/base/stats.h"

namespace unidle::experiment {

namespace {

/// Losses closer than this come from the same samples.
constexpr double kSameLoss = 1e-4;

std::vector<double> losses_in(const std::vector<Learned>& runs) {
  std::vector<double> losses;
  for (const Learned& run : runs) {
    if (run.loss && std::isfinite(run.loss->value)) {
      losses.push_back(run.loss->value);
    }
  }
  return losses;
}

std::vector<double> metrics_in(const std::vector<Learned>& runs, const std::string& name) {
  std::vector<double> values;
  for (const Learned& run : runs) {
    if (const auto found = run.metrics.find(name); found != run.metrics.end() && std::isfinite(found->second.value)) {
      values.push_back(found->second.value);
    }
  }
  return values;
}

/// A seeded program draws the same samples in each run, so its losses are equal and further runs add no information.
std::size_t different_losses(const std::vector<Learned>& runs) {
  std::vector<double> different;
  for (const double loss : losses_in(runs)) {
    const bool known = std::any_of(different.begin(), different.end(),
                                   [&](double other) { return std::abs(loss - other) <= kSameLoss * std::abs(other); });
    if (!known) {
      different.push_back(loss);
    }
  }
  return std::max<std::size_t>(1, different.size());
}

std::optional<Reading> average_loss(const std::vector<Learned>& runs) {
  const auto count = static_cast<double>(runs.size());
  Reading average{0, 0, std::numeric_limits<double>::max()};
  double squares = 0;
  for (const Learned& run : runs) {
    if (!run.loss) {
      return std::nullopt;
    }
    average.value += run.loss->value / count;
    average.samples = std::min(average.samples, run.loss->samples);
    squares += run.loss->error * run.loss->error / count;
  }
  average.error = std::sqrt(squares / static_cast<double>(different_losses(runs)));
  return average;
}

}  // namespace

Spread Spread::of_difference(std::size_t before, std::size_t after) const {
  const double factor = std::sqrt(1 / static_cast<double>(before) + 1 / static_cast<double>(after));
  Spread difference{loss * factor, metrics};
  for (auto& [name, value] : difference.metrics) {
    value *= factor;
  }
  return difference;
}

Spread spread_of(const std::vector<Learned>& runs) {
  Spread spread;
  spread.loss = standard_deviation(losses_in(runs));
  if (!runs.empty()) {
    for (const auto& [name, reading] : runs.front().metrics) {
      spread.metrics[name] = standard_deviation(metrics_in(runs, name));
    }
  }
  return spread;
}

bool agree(const std::vector<Learned>& runs) {
  const Spread spread = spread_of(runs);
  const auto small = [](double deviation, double value) { return deviation <= kSameLoss * std::abs(value); };
  return runs.empty() || (small(spread.loss, runs.front().loss.value_or(Reading{}).value) &&
                          std::all_of(spread.metrics.begin(), spread.metrics.end(), [&](const auto& metric) {
                            return small(metric.second, runs.front().metrics.at(metric.first).value);
                          }));
}

Learned averaged(const std::vector<Learned>& runs) {
  Learned average = runs.front();
  average.loss = average_loss(runs);
  for (const Learned& run : runs) {
    average.why_no_loss = average.why_no_loss.empty() ? run.why_no_loss : average.why_no_loss;
  }
  for (auto& [name, reading] : average.metrics) {
    double squares = 0;
    double sum = 0;
    double count = 0;
    for (const Learned& run : runs) {
      if (const auto found = run.metrics.find(name); found != run.metrics.end()) {
        sum += found->second.value;
        squares += found->second.error * found->second.error;
        count += 1;
      }
    }
    reading.value = sum / count;
    reading.error = std::sqrt(squares) / count;
  }
  return average;
}

}  // namespace unidle::experiment
