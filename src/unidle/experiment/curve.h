// A value of a run against the samples that it had seen.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace unidle::experiment {

struct CurvePoint {
  double samples = 0;
  double value = 0;
};
/// Sorted by samples; every value is finite.
using Curve = std::vector<CurvePoint>;

/// Sorts by samples. Values that are no finite number, or too large to work with, are left out.
Curve curve_of(Curve points);

/// Centred moving average over `width` samples.
Curve smooth(const Curve& curve, double width);

/// Linear between points, held at the ends. REQUIRES: not empty.
double value_at(const Curve& curve, double samples);

/// The part of a curve from one number of samples to another, both included.
Curve between(const Curve& curve, double from, double to);

/// Standard deviation of the noise on a curve, from how far each point lies from the line through its neighbours
/// (Gasser, Sroka and Jennen-Steinmetz 1986). The median of these distances is taken, so that the bend with which a
/// training begins does not count as noise. Nothing for fewer than five points.
std::optional<double> noise(const Curve& curve);

}  // namespace unidle::experiment
