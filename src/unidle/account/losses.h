// Losses and metrics against the number of samples seen.
#pragma once

#include <vector>

#include "unidle/account/timeline.h"

namespace unidle::account {

struct CurvePoint {
  double samples = 0;
  double value = 0;
};
/// Sorted by samples; every value is is_representable().
using Curve = std::vector<CurvePoint>;

/// Sorts by samples. Drops values that are not finite or too large to compute with.
Curve curve_of(Curve points);

/// The training loss of the reference process; samples are of all ranks.
struct LossCurve {
  Curve points;
  std::vector<double> not_finite;  // samples at which the loss was not finite
};
/// From the steps and the metric "loss": a loss that is read long after its step is recorded as a metric.
LossCurve loss_curve(const RunData& run, const Timeline& timeline);

Curve metric_curve(const std::vector<record::Metric>& metrics);

}  // namespace unidle::account
