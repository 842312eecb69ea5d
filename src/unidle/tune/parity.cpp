#include "unidle/tune/parity.h"

#include <fmt/format.h>

#include <cmath>

#include "unidle/base/units.h"

namespace unidle::tune {

namespace {

Parity broken(std::string why) { return {false, std::move(why)}; }

Parity check_loss(const TrialResult& before, const TrialResult& after, bool exact, const ParityBands& bands) {
  const double baseline = *before.loss;
  const double changed = *after.loss;
  if (!std::isfinite(changed)) {
    return broken("the loss is not finite");
  }
  if (!std::isfinite(baseline)) {
    return {};
  }
  const double scale = std::max(std::abs(baseline), 1e-12);
  const double chance = bands.loss_errors * std::hypot(before.loss_error, after.loss_error) / scale;
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

Parity check_metric(const std::string& name, double baseline, double changed, const ParityBands& bands) {
  const double worse = larger_is_better(name) ? baseline - changed : changed - baseline;
  if (name == "psnr") {
    return worse <= bands.psnr_db
               ? Parity{}
               : broken(fmt::format("PSNR {:.2f} dB instead of {:.2f} dB at equal samples", changed, baseline));
  }
  const double relative = worse / std::max(std::abs(baseline), 1e-12);
  if (std::isfinite(changed) && relative <= bands.metric) {
    return {};
  }
  return broken(
      fmt::format("{} {} instead of {} at equal samples", name, format_number(changed), format_number(baseline)));
}

}  // namespace

bool larger_is_better(const std::string& metric) {
  for (const char* name : {"psnr", "ssim", "acc", "auc", "f1", "r2", "hit", "recall", "precision", "iou"}) {
    if (metric.find(name) != std::string::npos) {
      return true;
    }
  }
  return false;
}

Parity check_parity(const TrialResult& baseline, const TrialResult& changed, const Settings& changes,
                    const ParityBands& bands) {
  if (baseline.loss && changed.loss) {
    const Parity loss = check_loss(baseline, changed, is_exact(changes), bands);
    if (!loss.held) {
      return loss;
    }
  }
  for (const auto& [name, value] : baseline.metrics) {
    const auto found = changed.metrics.find(name);
    if (found == changed.metrics.end()) {
      continue;
    }
    const Parity metric = check_metric(name, value, found->second, bands);
    if (!metric.held) {
      return metric;
    }
  }
  return {};
}

}  // namespace unidle::tune
