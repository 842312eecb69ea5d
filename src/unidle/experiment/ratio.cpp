#include "unidle/experiment/ratio.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace unidle::experiment {

namespace {

// Two rates this close differ only by rounding.
constexpr double kSameRate = 1e-9;

bool usable(double value) { return std::isfinite(value) && value > 0; }

bool usable(const PairOfRates& pair) { return usable(pair.a.value) && usable(pair.b.value / pair.a.value); }

bool has_draws(const PairOfRates& pair) { return !pair.a.draws.empty() && !pair.b.draws.empty(); }

double draw_of(const SampledRate& rate, std::mt19937_64& random) {
  return rate.draws.empty() ? rate.value : rate.draws[random() % rate.draws.size()];
}

}  // namespace

std::optional<Ratio> ratio_of(const std::vector<PairOfRates>& pairs) {
  if (pairs.empty() || !std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return usable(pair); })) {
    return std::nullopt;
  }
  std::vector<double> ratios;
  for (const PairOfRates& pair : pairs) {
    ratios.push_back(pair.b.value / pair.a.value);
  }
  Ratio ratio{median(ratios), std::nullopt};
  if (pairs.size() == 1 && !has_draws(pairs.front())) {
    return ratio;
  }
  std::vector<double> drawn(pairs.size());
  ratio.interval = bootstrap([&](std::mt19937_64& random) {
    for (double& each : drawn) {
      const PairOfRates& pair = pairs[random() % pairs.size()];
      each = draw_of(pair.b, random) / draw_of(pair.a, random);
    }
    return median(drawn);
  });
  return ratio;
}

SpeedChange judge_speed(const std::optional<Ratio>& ratio, double tolerance) {
  if (!ratio || !ratio->interval) {
    return SpeedChange::kUnknown;
  }
  if (ratio->interval->low > 1 + kSameRate) {
    return SpeedChange::kFaster;
  }
  if (ratio->interval->high >= 1 - kSameRate) {
    return SpeedChange::kNoDifference;
  }
  return ratio->interval->high < 1 - tolerance ? SpeedChange::kRegression : SpeedChange::kSlower;
}

}  // namespace unidle::experiment
