// Epochs: the wait for input at their starts, and after the first epoch.
#pragma once

#include <cstdint>
#include <optional>

#include "unidle/account/timeline.h"

namespace unidle::account {

/// Samples per epoch as the program reports it; nothing otherwise.
std::optional<double> reported_samples_per_epoch(const RunData& run);

/// Share of the input wait, over the second half of the steps, in the tenth of steps that wait longest. Excludes the
/// first step of each epoch of `samples_per_epoch` samples, whose wait belongs to the epoch's start. Nothing with too
/// few steps or no wait.
std::optional<double> input_bursts(const Timeline& timeline, std::optional<double> samples_per_epoch);

/// The run after the first epoch.
struct AfterFirstEpoch {
  std::int64_t begin_ns = 0;
  double input_s = 0;
  double training_s = 0;  // of its steps, with their waits
};
/// Nothing while the first epoch is going on. REQUIRES: samples_per_epoch > 0.
std::optional<AfterFirstEpoch> after_first_epoch(const Timeline& timeline, double samples_per_epoch);

/// Seconds that the first `workers` steps of each epoch waited for input beyond the usual: a worker's first batch comes
/// only after the worker has started. REQUIRES: samples_per_epoch > 0.
double epoch_start_wait_s(const Timeline& timeline, double samples_per_epoch, std::int64_t workers);

}  // namespace unidle::account
