// When a run did what: the process that is looked at, its steps, what lies between them, which steps count.
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
  /// The process that is looked at: of those that train, the one with most steps, and of several the one with the
  /// lowest id. Nothing where no step was seen.
  std::optional<std::int64_t> process;
  double rank_factor = 1;           // samples of all processes over its own, while it trained
  std::vector<record::Step> steps;  // its steps, by time
  /// The steps that shares and rates are of: after warm-up, and before a profiler's window slows them. Where a window
  /// leaves too few, all after warm-up, and no rate.
  std::size_t first_counted = 0;
  std::size_t end_counted = 0;
  bool rated = false;     // rates can be told
  bool window = false;    // a profiler's window slows the steps after it
  TimeRanges training;    // its steps and starts, without validation and checkpoints
  TimeRanges starts;      // waiting for loader workers to start, outside the steps
  TimeRanges startup;     // before training begins, and what the program said is start-up
  TimeRanges checkpoint;  // saving one
  TimeRanges validate;    // validation, but for the checkpoints in it
  TimeRanges pauses;      // both
  std::int64_t validations = 0;
  std::int64_t checkpoints = 0;
  bool spans_seen = false;  // the program told of phases, so that none of a kind means none happened

  double wall_s() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  Steps counted() const { return Steps(steps).subspan(first_counted, end_counted - first_counted); }
  std::size_t rated_steps() const { return rated ? end_counted - first_counted : 0; }
};

/// How many first steps to leave out: a quarter of them, at least one, at most ten.
///
/// What warm-up is made of comes in numbers of steps, not in shares of a run: the first steps allocate and choose
/// algorithms, and the loader's queue was filled meanwhile, mostly with eight batches (four workers, two each). A run
/// too short for ten gives up a quarter, so that a trial of thirty steps is not measured by its queue. More than ten
/// would hide a first pass over little data, which is a cause and no warm-up.
std::size_t warm_up_steps(std::size_t steps);

Timeline make_timeline(const RunData& run);

/// The parts of a step that were timed, together.
std::int64_t parts_ns(const record::Step& step);
/// The wait for input may be recorded as part of a step and lie before its begin: with it.
std::int64_t begin_with_input_ns(const record::Step& step);

}  // namespace unidle::account
