// Throughput, with its uncertainty: block bootstrap over the steps that count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unidle/account/steps.h"
#include "unidle/base/stats.h"

namespace unidle::account {

/// Of all ranks. The time is that of the steps that count, gaps between them counted in.
struct Rates {
  std::optional<double> training;     // samples/s, without validation and checkpoints
  std::optional<double> total;        // samples/s, with those after warm-up
  std::optional<double> steps_per_s;  // of one rank, without validation and checkpoints
  std::optional<double> total_steps_per_s;
};
/// Nothing where a profiler's window leaves too few steps, or no samples were counted.
Rates rates(const Timeline& timeline, const std::vector<Period>& periods);

/// A rate in samples/s. The interval is absent when there are too few steps to take one.
struct Rate {
  double value = 0;
  std::optional<Interval> interval;  // 95 %
  std::vector<double> draws;         // of the bootstrap; empty without an interval
};

/// Rates::training and Rates::total with their intervals.
struct Throughput {
  std::optional<Rate> training;
  std::optional<Rate> total;
  std::size_t steps = 0;    // that were counted
  std::size_t warm_up = 0;  // that were left out
};

/// Blocks of two thirds of the square root of the number of steps keep most of the correlation between neighbouring
/// steps (a loader with N workers hands out its batches in bursts of N) inside one block and leave enough blocks to
/// draw from. How many validations and checkpoints there are is the schedule; how long each takes is drawn. Below eight
/// counted steps there is no interval. Seeded: the same steps and seed give the same draws.
Throughput throughput(const Timeline& timeline, const std::vector<Period>& periods, std::uint64_t seed);

/// The last seconds of a run that goes on.
struct RecentRates {
  std::optional<double> steps_per_s;    // of the process that is looked at
  std::optional<double> samples_per_s;  // of all ranks
  std::optional<double> input_share;    // of the time of these steps
};
/// `last`: the newest steps of all processes. Counts those that end in the last `window_s` of them.
RecentRates recent_rates(const std::vector<record::Step>& last, double window_s);

}  // namespace unidle::account
