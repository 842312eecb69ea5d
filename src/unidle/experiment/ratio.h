// Speed-up: the ratio of paired runs with its interval, and its interpretation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unidle/base/stats.h"

namespace unidle::experiment {

/// The rate of one run. `draws`: a bootstrap over its steps; empty when only the value is known.
struct SampledRate {
  double value = 0;
  std::vector<double> draws;
};

/// Two runs of a pair, one per setting.
struct PairOfRates {
  SampledRate a;
  SampledRate b;
};

/// B's rate relative to A's. The interval is absent when unknown.
struct Ratio {
  double value = 0;
  std::optional<Interval> interval;  // 95 %
};

/// The median ratio of the pairs, so that a machine that slows down gradually does not bias it. The interval covers the
/// scatter between the pairs (Student's t) and is never narrower than their draws say; a single pair has only its
/// draws, and without them none. Seeded: the same pairs give the same interval. Nothing without pairs, or when a rate
/// is not a positive number.
std::optional<Ratio> ratio_of(const std::vector<PairOfRates>& pairs);

enum class SpeedChange {
  kUnknown,       // no ratio, or no interval
  kNoDifference,  // the interval contains 1
  kFaster,
  kSlower,
  kRegression,  // slower, with the whole interval beyond the tolerance
};
/// `tolerance` as a share, 0.05 for five per cent.
SpeedChange judge_speed(const std::optional<Ratio>& ratio, double tolerance);

}  // namespace unidle::experiment
