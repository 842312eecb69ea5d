// Epochs: the wait for input at their starts, and after the first epoch.
#pragma once

#include <cstdint>
#include <optional>

#include "unidle/account/timeline.h"

namespace unidle::account {

/// Samples per epoch as the program reports it; nothing otherwise.
std::optional<double> told_samples_per_pass(const RunData& run);

/// Share of the input wait, over the second half of the steps, in the tenth of steps that wait longest. Excludes the
/// first step of each epoch of `per_pass` samples, whose wait belongs to the epoch's start. Nothing with too few steps
/// or no wait.
std::optional<double> input_bursts(const Timeline& timeline, std::optional<double> per_pass);

/// The run after the first epoch.
struct LaterPasses {
  std::int64_t begin_ns = 0;
  double input_s = 0;
};
/// Nothing while the first epoch is going on. REQUIRES: per_pass > 0.
std::optional<LaterPasses> later_passes(const Timeline& timeline, double per_pass);

/// Seconds that the first `workers` steps of each epoch waited for input beyond the usual: a worker's first batch comes
/// only after the worker has started. REQUIRES: per_pass > 0.
double pass_start_wait_s(const Timeline& timeline, double per_pass, std::int64_t workers);

}  // namespace unidle::account
