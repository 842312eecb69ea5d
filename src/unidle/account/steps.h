// Where the time of the steps went.
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

/// A step with what follows it up to the next one.
struct Period {
  std::int64_t begin_ns = 0;  // with the wait for input before the step
  std::int64_t end_ns = 0;    // where the next one begins; the step's own end for the last one that counts
  double wall_s = 0;          // between the two, without validation and checkpoints
  double step_s = 0;          // of the step and of workers that start after it; the rest of wall_s is a gap
  double samples = 0;         // of all ranks
  Parts parts{};              // sums to step_s
};

/// One a step, in time order.
///
/// An observer that thins itself out times the passes of some steps only: what another step leaves unexplained is
/// divided as in those that were seen in full. Where the passes of no step were timed, it is computing.
std::vector<Period> make_periods(const Timeline& timeline);

struct StepShares {  // sums to 1
  double input = 0;
  double transfer = 0;
  double compute = 0;
  double sync = 0;
  double optimizer = 0;
  double other = 0;
};

/// Means over the steps that count.
struct StepMeans {
  StepShares shares;
  Parts parts{};  // seconds of a step
  double step_s = 0;
  std::array<bool, kPartCount> seen{};  // which parts any step of the run reported; computing and "other" always are
  double samples_per_step = 0;          // median, of all ranks
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> batch_samples;  // of the largest micro-batch
  double micro_batches = 1;
};
/// Nothing when no step took any time.
std::optional<StepMeans> step_means(const Timeline& timeline, const std::vector<Period>& periods);

/// Samples of the largest micro-batch, from the step with the index `from` on.
std::optional<std::int64_t> largest_batch(Steps steps, std::int64_t from = 0);

}  // namespace unidle::account
