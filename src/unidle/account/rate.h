// Throughput with its uncertainty: block bootstrap over the counted steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unidle/account/steps.h"
#include "unidle/base/stats.h"

namespace unidle::account {

/// Rates of all ranks over the time of the counted steps, including gaps between them.
struct Rates {
  std::optional<double> training;     // samples/s, without validation and checkpoints
  std::optional<double> total;        // samples/s, including validation and checkpoints
  std::optional<double> steps_per_s;  // of one rank, without validation and checkpoints
  std::optional<double> total_steps_per_s;
};
/// Nothing when a profiler's window leaves too few steps; samples/s also when no samples were counted.
Rates rates(const Timeline& timeline, const std::vector<Period>& periods);

/// A rate in samples/s. The interval is absent when there are too few steps.
struct Rate {
  double value = 0;
  std::optional<Interval> interval;  // 95 %
  std::vector<double> draws;         // of the bootstrap; empty without an interval
};

/// Rates::training and Rates::total with their intervals.
struct Throughput {
  std::optional<Rate> training;
  std::optional<Rate> total;
  std::size_t steps = 0;    // counted
  std::size_t warm_up = 0;  // left out
};

/// Blocks of two thirds of the square root of the number of steps keep most of the correlation between neighbouring
/// steps (a loader with N workers delivers batches in bursts of N) within a block, and leave enough blocks to draw
/// from. The number of validations and checkpoints is given by the schedule; the duration of each is drawn. With fewer
/// than eight counted steps there is no interval. Seeded: the same steps and seed give the same draws.
Throughput throughput(const Timeline& timeline, const std::vector<Period>& periods, std::uint64_t seed);

/// One of several processes that train together.
struct RecentProcess {
  std::int64_t process = 0;
  std::optional<double> input_share;  // of the time of its steps
};

/// Rates over the last seconds of a running program.
struct RecentRates {
  std::optional<double> steps_per_s;     // of the reference process
  std::optional<double> samples_per_s;   // of all ranks
  std::optional<double> input_share;     // of the time of these steps
  std::vector<RecentProcess> processes;  // by process id; of a program with several
};
/// `last`: the newest steps of all processes. Uses those that end within the last `window_s` seconds.
RecentRates recent_rates(const std::vector<record::Step>& last, double window_s);

}  // namespace unidle::account
