// How the time of the steps was spent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/account/timeline.h"

namespace unidle::account {

/// The parts of a step, in the order in which they are shown. Indices into Parts.
enum Part : std::size_t { kInput, kTransfer, kCompute, kSync, kOptimizer, kOther, kPartCount };
constexpr std::array<std::string_view, kPartCount> kPartNames = {"input", "transfer",  "compute",
                                                                 "sync",  "optimizer", "other"};
using Parts = std::array<double, kPartCount>;  // seconds, or shares

/// A step and the time until the next one.
struct Period {
  std::int64_t begin_ns = 0;  // including the wait for input before the step
  std::int64_t end_ns = 0;    // begin of the next one; the step's own end for the last counted one
  double wall_s = 0;          // from begin to end, less validation and checkpoints
  double step_s = 0;          // of the step; the rest of wall_s is a gap
  double samples = 0;         // of all ranks
  Parts parts{};              // the sum is step_s
};

/// One period per step, in order of time.
///
/// An observer that limits its overhead times forward and backward passes of only some steps: the unexplained time of
/// other steps is divided like that of timed steps of about that length; what exceeds the longest of these is "other".
/// If no step's passes were timed, it counts as compute.
std::vector<Period> make_periods(const Timeline& timeline);

struct StepShares {  // the sum is 1
  double input = 0;
  double transfer = 0;
  double compute = 0;
  double sync = 0;
  double optimizer = 0;
  double other = 0;
};

/// Means over the counted steps.
struct StepMeans {
  StepShares shares;
  Parts parts{};  // seconds per step
  double step_s = 0;
  std::array<bool, kPartCount> seen{};  // parts that some step reported; compute and "other" always are
  double samples_per_step = 0;          // median, of all ranks
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> batch_samples;  // of the largest micro-batch
  double micro_batches = 1;
};
/// Nothing when no step has a duration.
std::optional<StepMeans> step_means(const Timeline& timeline, const std::vector<Period>& periods);

/// Samples of the largest micro-batch, from step `from` on.
std::optional<std::int64_t> largest_batch(Steps steps, std::int64_t from = 0);

}  // namespace unidle::account
