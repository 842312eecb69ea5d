// When a recorded run did what: its process, its phases, its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unidle/diagnose/detail/intervals.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::detail {

struct Timeline {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<std::int64_t> process;  // the training process that is looked at: the one with most steps
  std::vector<record::Step> steps;      // its steps, by time
  std::size_t first_steady = 0;         // index of the first step after warm-up
  /// Index of the first step that a profiler's window slows, see trace::attached_since(); nothing without a window.
  std::optional<std::size_t> first_slowed;
  Intervals training;  // its steps and starts, without validation and checkpoints
  Intervals starts;    // waiting for loader workers to start, outside the steps
  Intervals pauses;    // validation and checkpoints
  std::int64_t validations = 0;
  std::int64_t checkpoints = 0;
  bool spans_seen = false;  // the program told of phases, so that none of a kind means none happened

  double wall_s() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

/// Steps that count as warm-up: 5 %, at least 3, at most 20, and never more than half.
std::size_t warm_up_steps(std::size_t steps);

Timeline make_timeline(const record::Reader& reader);
/// Sums to the wall time. What no step or span covers between the first step and the end is `other`.
PhaseTimes phase_times(const Timeline& timeline, const std::vector<record::Span>& spans);

/// Means over the steps after warm-up. REQUIRES: the timeline has steps.
struct StepFacts {
  StepShares shares;
  double step_s = 0;
  /// Of the steps before a profiler's window, where there is one; absent where they are too few.
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> batch_samples;
  double micro_batches = 1;
};
/// Nothing when no step took any time.
std::optional<StepFacts> step_facts(const Timeline& timeline);

/// Samples of the largest micro-batch, from the step with the index `from` on.
std::optional<std::int64_t> largest_batch(std::span<const record::Step> steps, std::int64_t from = 0);

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

/// The whole period of a step: its duration, or the sum of its parts where the wait for input lies before its begin;
/// validation and checkpoints inside it are taken out.
std::int64_t step_period_ns(const record::Step& step, const Intervals& pauses);

}  // namespace unidle::diagnose::detail
