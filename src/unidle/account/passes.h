// Passes over the data: what waiting for input is like at their starts, and after the first of them.
#pragma once

#include <cstdint>
#include <optional>

#include "unidle/account/timeline.h"

namespace unidle::account {

/// Samples in one pass over the data as the program says; nothing where it does not.
std::optional<double> told_samples_per_pass(const RunData& run);

/// Share of the input wait in the second half of the steps that falls to the tenth of them that wait longest. The first
/// step of each pass over the data, of `per_pass` samples, is left out: its wait is the start of the pass. Nothing with
/// too few steps or no wait.
std::optional<double> input_bursts(const Timeline& timeline, std::optional<double> per_pass);

/// What is seen of the run after the first pass over the data.
struct LaterPasses {
  std::int64_t begin_ns = 0;
  double input_s = 0;
};
/// Nothing while the first pass goes on. REQUIRES: per_pass > 0.
std::optional<LaterPasses> later_passes(const Timeline& timeline, double per_pass);

/// Seconds that the first `workers` steps of each pass waited for input beyond the usual: each worker's first batch
/// comes only once it has started. REQUIRES: per_pass > 0.
double pass_start_wait_s(const Timeline& timeline, double per_pass, std::int64_t workers);

}  // namespace unidle::account
