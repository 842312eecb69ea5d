// Reads the text of a run, Slurm's output and the program's log, in one pass and constant memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/logs/failure_line.h"
#include "unidle/logs/gpu_log.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

/// A line worth quoting.
struct Quote {
  std::string text;
  std::uint64_t line = 0;
  std::int64_t progress_before = 0;  // progress lines up to here
};

/// A failure of a process or of the run, from a line or a traceback.
struct Failure {
  FailureFacts facts;
  Quote quote;          // for a traceback from its header to its message
  std::string message;  // the line that names it, without the times, ranks and levels before it
  bool is_traceback = false;
  std::optional<std::int64_t> t_ns;
  std::uint64_t end_byte = 0;  // position of its end in the log
};

/// A counted unit: "epoch", "step", "iteration", "episode", "round", "batch", "sample".
struct Counter {
  std::string kind;
  std::int64_t seen = 0;  // lines with this counter
  double first = 0;
  double last = 0;
  std::optional<double> total;
  double advanced = 0;          // sum of its increments, over all restarts
  std::int64_t changes = 0;     // how often its value changed
  std::int64_t restarts = 0;    // how often it fell back, as the inner of two loops does
  bool first_had_loss = false;  // its first line had a loss: the count is of what is done, not of what begins
  bool last_had_loss = false;
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> changed_ns;  // first time of its last value
  std::optional<std::int64_t> last_ns;     // last time it was seen
  double train_s_first = 0;                // training time before first_ns
  double train_s_changed = 0;              // training time before changed_ns
  double train_s_last = 0;

  /// Whether each of its units holds many steps.
  bool is_outer() const { return kind == "epoch" || kind == "episode" || kind == "round"; }
};

/// Changes and restarts of all counters of a log.
struct Counted {
  std::int64_t changes = 0;
  std::int64_t restarts = 0;
};

/// The time spent in each phase, from the times in the lines.
struct LogPhases {
  double startup_s = 0;
  double train_s = 0;
  double validate_s = 0;
  double checkpoint_s = 0;
  double away_s = 0;             // between attempts of the run
  std::int64_t validations = 0;  // with a line at their start
  std::int64_t checkpoints = 0;
  bool training_seen = false;
  std::optional<std::int64_t> loop_begin_ns;
  std::optional<std::int64_t> loop_end_ns;  // last event of the loop
};

/// A progress bar, over all its runs. It has a clock of its own, so lines need no times.
struct BarUse {
  std::string label;  // without digits
  bool validation = false;
  std::int64_t runs = 0;
  double seconds = 0;
  double steps = 0;
  bool counts_samples = false;  // "32.00img/s": `steps` are samples
  double last_done = 0;         // in its last run
  double last_total = 0;
};

/// A setting as the log states it.
struct StatedSetting {
  std::string value;
  std::uint64_t line = 0;
};

/// What the program states about its training steps, as means over steps. The first statement is dropped if others
/// follow, because it includes the cost of starting up.
struct StatedSteps {
  std::int64_t lines = 0;            // with a step time
  std::optional<double> step_s;      // time of one step
  std::optional<double> data_share;  // fraction of a step spent waiting for data
  std::optional<Quote> data_line;    // its first line
  double seconds = 0;                // of all steps that the lines stand for, if they count steps
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  std::optional<double> tokens_per_s;
  bool tokens_per_device = false;  // per device, not in total
  std::optional<double> batch;     // samples per step, over all devices
};

enum class LogEnd { kUnknown, kTimeLimit, kCancelled, kPreempted, kNodeFailed };

/// A message of the scheduler that it ended an attempt of the run.
struct SchedulerEnd {
  LogEnd end = LogEnd::kUnknown;
  Quote quote;
  std::optional<std::int64_t> t_ns;
};

struct TextLog {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> last_ns;
  bool has_date = false;  // times have a year and can be compared with other files
  std::optional<std::int64_t> job_id;
  std::optional<double> stated_wall_s;  // of the whole job, as the scheduler states it

  bool has_both_streams = true;  // stdout, which has a buffer, and stderr: lines may be out of order

  // The end
  std::optional<SchedulerEnd> end;    // of the last attempt
  std::vector<SchedulerEnd> earlier;  // of previous attempts, at most kMostEarlier
  std::vector<Failure> failures;      // in order, at most kMostFailures
  std::optional<int> first_rank;      // the rank that failed first, according to the launcher
  std::optional<Quote> error;         // the last line of level ERROR
  std::int64_t error_lines = 0;
  std::optional<Quote> claim;        // the last line that claims success
  std::optional<Quote> failed_part;  // "Experiment 2 failed!": the last line that reports a failed part of the run
  bool claim_names_training = false;
  Counted before_claim;             // counted() at that time
  std::uint64_t open_bar_line = 0;  // the last line of a bar that never reached its end
  bool is_whole = false;            // the last of all announced units is done: "epoch 10/10" with its results

  // Loss
  std::int64_t loss_lines = 0;
  std::int64_t bad_loss_lines = 0;           // with a loss that is nan or infinite
  std::int64_t trailing_bad_loss_lines = 0;  // consecutive lines up to the end without a finite loss
  std::optional<Quote> bad_loss;             // the first such line
  std::optional<Quote> hopeless_loss;        // the first of those lines

  // Progress
  std::int64_t progress_lines = 0;
  std::uint64_t started_line = 0;  // where its first lines came again: the program was started again
  std::uint64_t live_line = 0;     // the last progress that cannot have waited in a buffer
  std::uint64_t other_line = 0;    // the last line that is neither empty nor progress nor part of a traceback
  std::vector<Counter> counters;
  LogPhases phases;
  std::vector<BarUse> bars;
  std::optional<double> rows_per_epoch;  // samples of the training set, as stated
  StatedSteps stated;
  Readings stated_validation_s;
  Readings stated_epoch_s;
  Readings stated_run_s;                // transformers' train_runtime
  double validated_in_runs_s = 0;       // the part of it that validations took
  std::int64_t validation_results = 0;  // results of validations, with or without a time

  // Configuration and device
  std::map<std::string, StatedSetting> settings;  // by knob
  std::optional<std::string> device;              // "cuda", "cpu"
  std::optional<std::string> capability;
  GpuLog tables;  // plain nvidia-smi tables in the text

  static constexpr std::size_t kMostEarlier = 16;
  static constexpr std::size_t kMostFailures = 64;

  const Counter* counter(std::string_view kind) const;
  Counted counted() const;
  /// Whether nothing in the text is known to come from a run.
  bool has_no_run_data() const;
  /// Whether it has nothing of one but times.
  bool has_only_times() const;
};

/// Number of progress lines after a quoted line.
std::int64_t progress_after(const TextLog& log, const Quote& quote);

/// The failure that explains the end of a run. If training continued after all of them, the program's own last one;
/// none without failures. Causes come before their consequences. For one process the last failure counts, for several
/// processes the first one to fail.
struct DecisiveFailure {
  const Failure* failure = nullptr;
  bool went_on = false;
};
DecisiveFailure decisive_failure(const TextLog& log);
/// The same among failures by lack of memory.
DecisiveFailure lack_of_memory(const TextLog& log);
/// Sort key, most explanatory first: a consequence comes after its cause.
std::pair<Blame, bool> order_of(const FailureFacts& facts);

/// Throws kInput when the source cannot be read.
TextLog read_text_log(Source& source);

}  // namespace unidle::logs
