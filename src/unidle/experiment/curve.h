// A value of a run against the number of samples seen.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "unidle/account/losses.h"

namespace unidle::experiment {

using account::Curve;
using account::curve_of;
using account::CurvePoint;

/// Centred moving average over `width` samples.
Curve smooth(const Curve& curve, double width);

/// Interpolates linearly between points; constant beyond the ends. REQUIRES: not empty.
double value_at(const Curve& curve, double samples);

/// The part of a curve from `from` to `to` samples, inclusive.
Curve between(const Curve& curve, double from, double to);

/// Standard deviation of the noise on a curve, estimated from the distance of each point from the line through its
/// neighbours (Gasser, Sroka and Jennen-Steinmetz 1986). Uses the median distance, so that the bend at the start of
/// training does not count as noise. Nothing for fewer than five points.
std::optional<double> noise(const Curve& curve);

}  // namespace unidle::experiment
