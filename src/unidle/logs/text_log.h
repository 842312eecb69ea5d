// What the text of a run tells: Slurm's output and the program's own log, in one pass and constant memory.
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
  Quote quote;          // of a traceback from its header to its message
  std::string message;  // the line that names it, without times, ranks and levels before it
  bool is_traceback = false;
  std::optional<std::int64_t> t_ns;
};

/// Something that is counted: "epoch", "step", "iteration", "batch", "sample".
struct Counter {
  std::string kind;
  std::int64_t seen = 0;  // lines that name it
  double first = 0;
  double last = 0;
  std::optional<double> total;
  double advanced = 0;          // sum of its steps forward, over restarts
  std::int64_t restarts = 0;    // times that it fell back: the inner one of two loops
  bool first_had_loss = false;  // the line that named it first told a loss: it names what is done, not what begins
  bool last_had_loss = false;
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> changed_ns;  // when its last value was first named
  std::optional<std::int64_t> last_ns;     // when it was last named
  double train_s_first = 0;                // seconds of training before first_ns
  double train_s_changed = 0;              // and before changed_ns
  double train_s_last = 0;
};

/// Where the time went, by the times in the lines.
struct LogPhases {
  double startup_s = 0;
  double train_s = 0;
  double validate_s = 0;
  double checkpoint_s = 0;
  double away_s = 0;             // before another attempt or start of the run
  std::int64_t validations = 0;  // with a begin that was told
  std::int64_t checkpoints = 0;
  bool training_seen = false;
  std::optional<std::int64_t> loop_begin_ns;
  std::optional<std::int64_t> loop_end_ns;  // the last event of the loop
};

/// A progress bar, all its runs together: it has a clock of its own, so lines need none.
struct BarUse {
  std::string label;  // figures left out
  bool validation = false;
  std::int64_t runs = 0;
  double seconds = 0;
  double steps = 0;
  double last_done = 0;  // of its last run
  double last_total = 0;
};

/// A setting as the log states it.
struct StatedSetting {
  std::string value;
  std::uint64_t line = 0;
};

/// What the program itself states of its training steps, as means over steps. The first line that states something is
/// left out where others follow: it holds what only the start costs.
struct StatedSteps {
  std::int64_t lines = 0;            // that tell how long a step takes
  std::optional<double> step_s;      // of one step
  std::optional<double> data_share;  // of a step, waiting for data
  std::optional<Quote> data_line;    // the first line that tells it
  double seconds = 0;                // of all steps that the lines stand for, where they count steps
  std::optional<double> samples_per_s;
  std::optional<double> steps_per_s;
  std::optional<double> tokens_per_s;
  bool tokens_per_device = false;  // of one device of several
  std::optional<double> batch;     // samples of one step, of all devices
};

enum class LogEnd { kUnknown, kTimeLimit, kCancelled, kPreempted, kNodeFailed };

/// The scheduler's message that it ended an attempt of the run.
struct SchedulerEnd {
  LogEnd end = LogEnd::kUnknown;
  Quote quote;
  std::optional<std::int64_t> t_ns;
};

struct TextLog {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::uint64_t cut_lines = 0;  // too long to be read whole
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> last_ns;
  bool has_date = false;  // times carry a year, so that they compare with other files
  std::optional<std::int64_t> job_id;

  // The end
  std::optional<SchedulerEnd> end;    // of the last attempt
  std::vector<SchedulerEnd> earlier;  // of attempts that a later one followed: at most kMostEarlier
  std::vector<Failure> failures;      // in the order of the lines: at most kMostFailures
  std::optional<int> first_rank;      // the rank that failed first, by its launcher
  std::optional<Quote> error;         // the last line of level ERROR
  std::int64_t error_lines = 0;
  std::optional<Quote> claim;        // the last line that claims success
  std::optional<Quote> failed_part;  // "Experiment 2 failed!": the last line by which a part of the run failed
  bool claim_names_training = false;
  double counted_before_claim = 0;  // counted() when it was made
  std::uint64_t open_bar_line = 0;  // the last line that draws a bar which never came to its end
  bool is_whole = false;            // the last of all units that it announces is done: "epoch 10/10" with its results

  // Loss
  std::int64_t loss_lines = 0;
  std::int64_t bad_loss_lines = 0;       // with a loss that is nan or infinite
  std::int64_t hopeless_loss_lines = 0;  // the last lines in a row without any finite loss
  std::optional<Quote> bad_loss;         // the first such line
  std::optional<Quote> hopeless_loss;    // where that row begins

  // Progress
  std::int64_t progress_lines = 0;
  std::vector<Counter> counters;
  LogPhases phases;
  std::vector<BarUse> bars;
  std::optional<double> rows_per_epoch;  // samples of the training set, as stated
  StatedSteps stated;
  Readings stated_validation_s;
  Readings stated_epoch_s;
  std::int64_t told_validations = 0;  // results of a validation, timed or not

  // What it runs on
  std::map<std::string, StatedSetting> settings;  // by knob
  std::optional<std::string> device;              // "cuda", "cpu"
  std::optional<std::string> capability;
  GpuLog tables;  // plain nvidia-smi tables in the text

  static constexpr std::size_t kMostEarlier = 16;
  static constexpr std::size_t kMostFailures = 64;

  const Counter* counter(std::string_view kind) const;
  /// By how much all counters advanced.
  double counted() const;
  /// Nothing in it is known to come from a run.
  bool says_nothing() const;
};

/// Progress lines that follow a failure: where there are any, the run went on.
std::int64_t progress_after(const TextLog& log, const Quote& quote);

/// The failure that explains the end of a run; where training went on after all of them, the last one that is the
/// program's own; none without failures. Causes come before their consequences. Of one process the last failure counts,
/// of several processes the one that failed first.
struct DecisiveFailure {
  const Failure* failure = nullptr;
  bool went_on = false;
};
DecisiveFailure decisive_failure(const TextLog& log);
/// The same among those that are a lack of memory.
DecisiveFailure lack_of_memory(const TextLog& log);
/// The order of failures by how much they explain, most first: a consequence comes after its cause.
std::pair<Blame, bool> order_of(const FailureFacts& facts);

/// Throws kInput when the source cannot be read.
TextLog read_text_log(Source& source);

}  // namespace unidle::logs
