#include "unidle/experiment/ratio.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

namespace unidle::experiment {

namespace {

// Two rates this close differ only by rounding.
constexpr double kSameRate = 1e-9;

bool usable(double value) { return std::isfinite(value) && value > 0; }

bool usable(const PairOfRates& pair) { return usable(pair.a.value) && usable(pair.b.value / pair.a.value); }

bool has_draws(const PairOfRates& pair) { return !pair.a.draws.empty() || !pair.b.draws.empty(); }

double draw_of(const SampledRate& rate, std::mt19937_64& random) {
  return rate.draws.empty() ? rate.value : rate.draws[random() % rate.draws.size()];
}

/// How many pairs are left out at each end, so that one accident in a run does not decide: none of fewer than six.
std::size_t left_out(std::size_t pairs) { return pairs / 6; }

/// Mean of the pairs' log ratios without those left out.
double trimmed_mean(std::vector<double> logs) {
  std::sort(logs.begin(), logs.end());
  const std::size_t out = left_out(logs.size());
  return mean(std::span(logs).subspan(out, logs.size() - 2 * out));
}

/// Student's t interval of the trimmed mean. Those left out count as their neighbours do (K. Yuen, Biometrika 61,
/// 1974); with none left out it is the ordinary one. REQUIRES: at least two.
Interval interval_between(std::vector<double> logs) {
  const double centre = trimmed_mean(logs);
  std::sort(logs.begin(), logs.end());
  const std::size_t out = left_out(logs.size());
  std::fill_n(logs.begin(), out, logs[out]);
  std::fill_n(logs.rbegin(), out, logs[logs.size() - out - 1]);
  const std::size_t kept = logs.size() - 2 * out;
  const double error = standard_deviation(logs) *
                       std::sqrt(static_cast<double>(logs.size() - 1) / static_cast<double>(kept * (kept - 1)));
  const double reach = student_t(kept - 1) * error;
  return {centre - reach, centre + reach};
}

/// The interval of the trimmed mean when only the steps within each run scatter.
Interval interval_within(const std::vector<PairOfRates>& pairs) {
  std::vector<double> logs(pairs.size());
  return bootstrap([&](std::mt19937_64& random) {
    std::transform(pairs.begin(), pairs.end(), logs.begin(),
                   [&](const auto& pair) { return std::log(draw_of(pair.b, random) / draw_of(pair.a, random)); });
    return trimmed_mean(logs);
  });
}

}  // namespace

std::optional<Ratio> ratio_of(const std::vector<PairOfRates>& pairs) {
  if (pairs.empty() || !std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return usable(pair); })) {
    return std::nullopt;
  }
  std::vector<double> ratios;
  std::vector<double> logs;
  for (const PairOfRates& pair : pairs) {
    ratios.push_back(pair.b.value / pair.a.value);
    logs.push_back(std::log(ratios.back()));
  }
  Ratio ratio{median(ratios), std::nullopt};
  const auto hold = [&](const Interval& of_logs) {
    const Interval before = ratio.interval.value_or(Interval{ratio.value, ratio.value});
    ratio.interval = {std::min(before.low, std::exp(of_logs.low)), std::max(before.high, std::exp(of_logs.high))};
  };
  if (pairs.size() > 1) {
    hold(interval_between(logs));
  }
  if (std::any_of(pairs.begin(), pairs.end(), has_draws)) {
    hold(interval_within(pairs));
  }
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
