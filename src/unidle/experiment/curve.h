// A value of a run against the samples that it had seen.
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

/// Linear between points, held at the ends. REQUIRES: not empty.
double value_at(const Curve& curve, double samples);

/// The part of a curve from one number of samples to another, both included.
Curve between(const Curve& curve, double from, double to);

/// Standard deviation of the noise on a curve, from how far each point lies from the line through its neighbours
/// (Gasser, Sroka and Jennen-Steinmetz 1986). The median of these distances is taken, so that the bend with which a
/// training begins does not count as noise. Nothing for fewer than five points.
std::optional<double> noise(const Curve& curve);

}  // namespace unidle::experiment
