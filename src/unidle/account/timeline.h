// When a run did what: the reference process, its steps, the phases between them, and which steps count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unidle/account/run_data.h"
#include "unidle/base/time_ranges.h"
#include "unidle/record/record.h"

namespace unidle::account {

using Steps = std::span<const record::Step>;

struct Timeline {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  /// The reference process: the training process with most steps, and of equals the one with the lowest id. Nothing
  /// when no step was seen.
  std::optional<std::int64_t> process;
  double rank_factor = 1;           // samples of all processes relative to its own, while it trained
  std::vector<record::Step> steps;  // its steps, in order of time
  /// The counted steps, over which shares and rates are computed: after warm-up and before a profiler's window, which
  /// slows later steps. If a window leaves too few, all after warm-up, without a rate.
  std::size_t first_counted = 0;
  std::size_t end_counted = 0;
  bool rated = false;     // a rate is available
  bool window = false;    // has a profiler's window, which slows later steps
  TimeRanges training;    // its steps, less validation and checkpoints
  TimeRanges startup;     // before training, and what the program marked as start-up
  TimeRanges checkpoint;  // saving a checkpoint
  TimeRanges validate;    // validation, less the checkpoints in it
  TimeRanges pauses;      // both
  std::int64_t validations = 0;
  std::int64_t dry_runs = 0;  // of `validations`, those that began before the first step was finished
  std::int64_t checkpoints = 0;
  std::optional<std::int64_t> checkpoint_every;  // steps from one checkpoint to the next, if regular
  bool spans_seen = false;                       // steps or spans were seen, so a kind without spans did not happen

  /// Whether a validation that begins then shows a model that no step has trained.
  bool is_dry_run(std::int64_t t_ns) const {
    return !steps.empty() && t_ns < steps.front().t_ns + steps.front().duration_ns;
  }
  double wall_s() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  Steps counted() const { return Steps(steps).subspan(first_counted, end_counted - first_counted); }
  std::size_t rated_steps() const { return rated ? end_counted - first_counted : 0; }
};

/// The number of first steps to leave out: a quarter, at least one, at most ten; none of a single step.
///
/// Warm-up takes a number of steps rather than a share of the run: the first steps allocate and choose algorithms, and
/// meanwhile the loader fills its queue, usually with eight batches (four workers, two each). A run too short for ten
/// leaves out a quarter, so that a trial of thirty steps does not measure its queue. More than ten would hide a first
/// epoch over little data, which is a cause and not warm-up.
std::size_t warm_up_steps(std::size_t steps);

Timeline make_timeline(const RunData& run);

/// The sum of the step's timed parts.
std::int64_t parts_ns(const record::Step& step);
/// The step's begin, or the begin of its wait for input when that lies before the step.
std::int64_t begin_with_input_ns(const record::Step& step);

}  // namespace unidle::account
