#include "unidle/tune/search/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"
#include "unidle/base/units.h"

namespace unidle::tune {

namespace {

Parity broken(std::string why) { return {false, std::move(why)}; }

/// Losses that are closer than this are those of the same samples.
constexpr double kSameLoss = 1e-4;

Parity check_loss(const TrialResult& before, const TrialResult& after, bool exact, const ParityBands& bands,
                  const Spread& by_chance) {
  const double baseline = *before.loss;
  const double changed = *after.loss;
  if (!std::isfinite(changed)) {
    return broken("the loss is not finite");
  }
  if (!std::isfinite(baseline)) {
    return {};
  }
  const double scale = std::max(std::abs(baseline), 1e-12);
  const double chance = bands.loss_errors * std::hypot(before.loss_error, after.loss_error, by_chance.loss) / scale;
  const double least = exact ? bands.exact_loss : bands.numeric_loss;
  const double band = std::max(least, chance);
  const double difference = (changed - baseline) / scale;
  // Where other samples were drawn, a lower loss is no sign of harm.
  const bool out = exact && band == least ? std::abs(difference) > band : difference > band;
  if (!out) {
    return {};
  }
  return broken(fmt::format("loss {} instead of {} at equal samples ({:+.1f} %, allowed {:.0f} %)",
                            format_number(changed), format_number(baseline), difference * 100, band * 100));
}

Parity check_metric(const std::string& name, double baseline, double changed, const ParityBands& bands,
                    const Spread& by_chance) {
  const double worse = larger_is_better(name) ? baseline - changed : changed - baseline;
  const auto spread = by_chance.metrics.find(name);
  const double chance = spread == by_chance.metrics.end() ? 0 : bands.loss_errors * spread->second;
  if (name == "psnr") {
    return worse <= std::max(bands.psnr_db, chance)
               ? Parity{}
               : broken(fmt::format("PSNR {:.2f} dB instead of {:.2f} dB at equal samples", changed, baseline));
  }
  const double scale = std::max(std::abs(baseline), 1e-12);
  if (std::isfinite(changed) && worse / scale <= std::max(bands.metric, chance / scale)) {
    return {};
  }
  return broken(
      fmt::format("{} {} instead of {} at equal samples", name, format_number(changed), format_number(baseline)));
}

std::vector<double> losses_in(const std::vector<TrialResult>& runs) {
  std::vector<double> losses;
  for (const TrialResult& run : runs) {
    if (run.loss && std::isfinite(*run.loss)) {
      losses.push_back(*run.loss);
    }
  }
  return losses;
}

std::vector<double> metrics_in(const std::vector<TrialResult>& runs, const std::string& name) {
  std::vector<double> values;
  for (const TrialResult& run : runs) {
    if (const auto found = run.metrics.find(name); found != run.metrics.end() && std::isfinite(found->second)) {
      values.push_back(found->second);
    }
  }
  return values;
}

/// A seeded program draws the same samples in each run: its losses are equal, and more runs say no more than one.
std::size_t different_losses(const std::vector<TrialResult>& runs) {
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

}  // namespace

Spread Spread::of_difference(std::size_t before, std::size_t after) const {
  const double factor = std::sqrt(1 / static_cast<double>(before) + 1 / static_cast<double>(after));
  Spread difference{loss * factor, metrics};
  for (auto& [name, value] : difference.metrics) {
    value *= factor;
  }
  return difference;
}

Spread spread_of(const std::vector<TrialResult>& runs) {
  Spread spread;
  const auto deviation = [](const std::vector<double>& values) {
    return values.size() < 2 ? 0 : standard_deviation(values);
  };
  spread.loss = deviation(losses_in(runs));
  for (const auto& [name, value] : runs.empty() ? std::map<std::string, double>{} : runs.front().metrics) {
    spread.metrics[name] = deviation(metrics_in(runs, name));
  }
  return spread;
}

bool agree(const std::vector<TrialResult>& runs) {
  const Spread spread = spread_of(runs);
  const auto small = [](double deviation, double value) { return deviation <= kSameLoss * std::abs(value); };
  return runs.empty() || (small(spread.loss, runs.front().loss.value_or(0)) &&
                          std::all_of(spread.metrics.begin(), spread.metrics.end(), [&](const auto& metric) {
                            return small(metric.second, runs.front().metrics.at(metric.first));
                          }));
}

TrialResult averaged(const std::vector<TrialResult>& runs) {
  TrialResult mean_of = runs.front();
  const auto count = static_cast<double>(runs.size());
  double loss = 0;
  double squares = 0;
  for (const TrialResult& run : runs) {
    if (!run.loss) {
      mean_of.loss.reset();
      break;
    }
    loss += *run.loss / count;
    squares += run.loss_error * run.loss_error / count;
  }
  if (mean_of.loss) {
    mean_of.loss = loss;
    mean_of.loss_error = std::sqrt(squares / static_cast<double>(different_losses(runs)));
  }
  for (auto& [name, value] : mean_of.metrics) {
    value = 0;
    for (const TrialResult& run : runs) {
      const auto found = run.metrics.find(name);
      value += (found == run.metrics.end() ? runs.front().metrics.at(name) : found->second) / count;
    }
  }
  return mean_of;
}

bool larger_is_better(const std::string& metric) {
  for (const char* name : {"psnr", "ssim", "acc", "auc", "f1", "r2", "hit", "recall", "precision", "iou"}) {
    if (metric.find(name) != std::string::npos) {
      return true;
    }
  }
  return false;
}

Parity check_parity(const TrialResult& baseline, const TrialResult& changed, const knobs::Settings& changes,
                    const ParityBands& bands, const Spread& chance) {
  if (baseline.loss && changed.loss) {
    const Parity loss = check_loss(baseline, changed, knobs::is_exact(changes), bands, chance);
    if (!loss.held) {
      return loss;
    }
  }
  for (const auto& [name, value] : baseline.metrics) {
    const auto found = changed.metrics.find(name);
    if (found == changed.metrics.end()) {
      continue;
    }
    const Parity metric = check_metric(name, value, found->second, bands, chance);
    if (!metric.held) {
      return metric;
    }
  }
  return {};
}

}  // namespace unidle::tune
