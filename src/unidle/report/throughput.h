// Throughput with its uncertainty: block bootstrap over the steps after warm-up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unidle/base/stats.h"
#include "unidle/report/steps.h"

namespace unidle::report {

/// A rate in samples/s. The interval is absent when there are too few steps to take one.
struct Rate {
  double value = 0;
  std::optional<Interval> interval;  // 95 %
  std::vector<double> draws;         // of the bootstrap; empty without an interval
};

/// `training` counts the time of the steps alone; `total` adds the validations and checkpoints after warm-up.
struct Throughput {
  std::optional<Rate> training;
  std::optional<Rate> total;
  std::size_t steps = 0;    // that were counted
  std::size_t warm_up = 0;  // that were left out
};

/// Blocks of two thirds of the square root of the number of steps keep most of the correlation between neighbouring
/// steps (a loader with N workers hands out its batches in bursts of N) inside one block and leave enough blocks to
/// draw from. Steps from a profiler's window on are slower and do not count. Below eight counted steps there is no
/// interval. Seeded: the same steps and seed give the same draws.
Throughput throughput(const RunData& run, const std::vector<Cycle>& cycles, std::uint64_t seed);

}  // namespace unidle::report
