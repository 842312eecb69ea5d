// How much faster: the ratio of paired runs with its interval, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unidle/base/stats.h"

namespace unidle::experiment {

/// The rate of one run. `draws`: a bootstrap over its steps; empty where the value alone is known.
struct SampledRate {
  double value = 0;
  std::vector<double> draws;
};

/// Two runs that stood side by side, one of each setting.
struct PairOfRates {
  SampledRate a;
  SampledRate b;
};

/// B's rate by A's. The interval is absent where nothing tells it.
struct Ratio {
  double value = 0;
  std::optional<Interval> interval;  // 95 %
};

/// The median of the pairs, so that a machine that gets slower meanwhile does no harm. The interval is a bootstrap over
/// the pairs and over the draws in them; of one pair without draws there is none. Seeded: the same pairs give the same
/// interval. Nothing when a rate is no positive number, or without pairs.
std::optional<Ratio> ratio_of(const std::vector<PairOfRates>& pairs);

enum class SpeedChange {
  kUnknown,       // there is no ratio, or no interval of it
  kNoDifference,  // the interval contains 1
  kFaster,
  kSlower,
  kRegression,  // slower, and the whole interval lies beyond the tolerance
};
/// `tolerance` as a share, 0.05 for five per cent.
SpeedChange judge_speed(const std::optional<Ratio>& ratio, double tolerance);

}  // namespace unidle::experiment
