// Does the second run learn as well as the first? Loss and metrics at equal numbers of samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/report/run.h"

namespace unidle::report {

/// A value against the samples seen when it was taken. Sorted by samples.
struct CurvePoint {
  double samples = 0;
  double value = 0;
};
using Curve = std::vector<CurvePoint>;

/// The training loss of the steps, or else the metric "loss". Non-finite losses are left out and counted.
struct LossCurve {
  Curve points;
  std::size_t not_finite = 0;
};
LossCurve loss_curve(const RunData& run);
Curve metric_curve(const std::vector<record::Metric>& metrics);

/// Centred moving average over `width` samples.
Curve smooth(const Curve& curve, double width);
/// Linear between points, held at the ends. REQUIRES: not empty.
double value_at(const Curve& curve, double samples);

enum class ParityVerdict { kEqual, kBetter, kWorse, kNotComparable };

struct Parity {
  std::string name;  // "loss", "psnr"
  ParityVerdict verdict = ParityVerdict::kNotComparable;
  double samples = 0;  // where the two are compared: the last number of samples that both reached
  double a = 0;
  double b = 0;
  double allowed = 0;   // how much worse B may be before it counts; 0 where a difference is stated only
  bool judged = false;  // false: the difference is stated, and never a regression
  std::string why;      // for kNotComparable, and for a loss that stopped being finite
};

/// Mean of the smoothed losses over the last quarter of the samples that both runs saw, at the points of the run whose
/// loss was read more rarely. Worse is more than 5 % of A's loss, 2 % of what A's loss fell by, and three standard
/// errors of the difference: what a person sees between two curves, and not what another order of the data makes. When
/// the errors hide even a quarter of the loss and no difference shows, the two are not comparable.
Parity loss_parity(const RunData& a, const RunData& b);

/// Every metric that both runs report, at the last common samples. PSNR counts as worse below 0.1 dB, a metric with
/// "loss" in its name above 5 %; of others the difference is stated.
std::vector<Parity> metric_parity(const RunData& a, const RunData& b);

}  // namespace unidle::report
