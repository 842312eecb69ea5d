// Losses and metrics against the samples seen when they were taken.
#pragma once

#include <vector>

#include "unidle/account/timeline.h"

namespace unidle::account {

struct CurvePoint {
  double samples = 0;
  double value = 0;
};
/// Sorted by samples; every value is workable().
using Curve = std::vector<CurvePoint>;

/// Sorts by samples. Values that are no finite number, or too large to work with, are left out.
Curve curve_of(Curve points);

/// The training loss of the process that is looked at; samples are of all ranks.
struct LossCurve {
  Curve points;
  std::vector<double> not_finite;  // samples at which the loss was no finite number
};
/// Of the steps, and of the metric "loss": a loss that is read back long after its step is recorded as that.
LossCurve loss_curve(const RunData& run, const Timeline& timeline);

Curve metric_curve(const std::vector<record::Metric>& metrics);

}  // namespace unidle::account
