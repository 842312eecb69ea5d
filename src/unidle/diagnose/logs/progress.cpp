// How a run spent its time, according to its logs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/characters.h"
#include "unidle/base/clock.h"
#include "unidle/base/units.h"
#include "unidle/diagnose/logs/how_far.h"
#include "unidle/diagnose/logs/job_logs.h"
#include "unidle/diagnose/logs/stated.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::BarUse;
using unidle::logs::Counter;
using unidle::logs::LogEnd;
using unidle::logs::TextLog;

/// Phases by the times in the lines. Other files may know when the whole run began and ended.
void add_timed_phases(const TextLog& log, const JobTimes& times, Signals& signals) {
  const auto& phases = log.phases;
  signals.wall_s = seconds(*times.end_ns - *times.begin_ns);
  PhaseTimes& time = signals.time;
  if (!phases.training_seen) {
    time.other = signals.wall_s;
    return;
  }
  time.startup = phases.startup_s + seconds(*log.first_ns - *times.begin_ns);
  time.train = phases.train_s;
  time.validate = phases.validate_s;
  time.checkpoint = phases.checkpoint_s;
  const double rest = signals.wall_s - time.startup - time.train - time.validate - time.checkpoint;
  // A run that was killed was still working between its last line and the end.
  const double away = std::min(phases.away_s, std::max(0.0, rest));
  time.other += away;
  (signals.outcome == Outcome::kTimedOut ? time.train : time.other) += std::max(0.0, rest) - away;
  if (phases.validations > 0) {
    signals.validations = phases.validations;
  }
  if (phases.checkpoints > 0) {
    signals.checkpoints = phases.checkpoints;
  }
}

/// The training bar with most time; inner bars of the same loop have less. Nothing if loops without labels take much of
/// the time, because any of them may be the validation.
const BarUse* main_bar(const TextLog& log) {
  constexpr double kMuch = 0.1;
  const BarUse* best = nullptr;
  const BarUse* second = nullptr;  // without a label
  for (const BarUse& bar : log.bars) {
    if (!bar.validation && bar.seconds > (best == nullptr ? 0 : best->seconds)) {
      second = best != nullptr && best->label.empty() ? best : second;
      best = &bar;
    } else if (!bar.validation && bar.label.empty() && (second == nullptr || bar.seconds > second->seconds)) {
      second = &bar;
    }
  }
  const bool unclear = best != nullptr && best->label.empty() && best->runs > 1 && second != nullptr &&
                       second->runs > 1 && second->seconds > kMuch * best->seconds;
  return unclear ? nullptr : best;
}

/// A bar over epochs does not count steps. Bars show whole seconds, which is not enough for short ones.
bool counts_steps(const BarUse& bar) {
  constexpr double kFewestSeconds = 10;
  const std::string label = lower(bar.label);
  const bool exact = bar.seconds >= kFewestSeconds * static_cast<double>(bar.runs);
  return exact && bar.steps > 0 && !bar.counts_samples && label != "epoch:" && label != "epochs:";
}

/// Validation time by bars and stated durations, for lines that do not show its begin.
void add_untimed_validation(const TextLog& log, Signals& signals) {
  if (signals.validations) {
    return;
  }
  double seconds = 0;
  std::int64_t count = 0;
  for (const BarUse& bar : log.bars) {
    if (bar.validation) {
      seconds += bar.seconds;
      count += bar.runs;
    }
  }
  if (count == 0 && log.stated_validation_s) {
    seconds = log.stated_validation_s.sum;
    count = log.stated_validation_s.count;
  }
  const bool lines_have_times = signals.wall_s > 0;
  if (count == 0 || seconds <= 0 || (lines_have_times && seconds > signals.time.train)) {
    return;
  }
  signals.validations = count;
  signals.time.validate = seconds;
  if (lines_have_times) {
    signals.time.train -= seconds;
  }
}

/// For lines without times: progress bars have clocks, and some programs state the duration of an epoch.
void add_untimed_phases(const TextLog& log, Signals& signals) {
  const BarUse* bar = main_bar(log);
  if (log.stated_run_s) {
    signals.time.train = std::max(0.0, log.stated_run_s.sum - log.validated_in_runs_s);
  } else if (bar != nullptr) {
    signals.time.train = bar->seconds;
  } else if (log.stated_epoch_s) {
    signals.time.train = log.stated_epoch_s.sum;
  }
  add_untimed_validation(log, signals);
  // The clock of a bar over the whole run goes on while the program validates.
  const bool over_all = !log.stated_run_s && bar != nullptr && bar->label.empty() && bar->runs == 1;
  if (over_all && log.stated_validation_s && signals.time.validate < signals.time.train) {
    signals.time.train -= signals.time.validate;
  }
  signals.wall_s = signals.time.train + signals.time.validate;
}

/// The counter of the innermost loop: the fastest one.
const Counter* step_counter(const TextLog& log) {
  const Counter* best = nullptr;
  for (const Counter& counter : log.counters) {
    if (!counter.is_outer() && counter.kind != "sample" && counter.advanced > (best == nullptr ? 0 : best->advanced)) {
      best = &counter;
    }
  }
  return best;
}

/// True when the lines' times do not cover training: none is later than its begin, or its steps take far longer than
/// the interval between the times.
bool times_miss_training(const TextLog& log, const JobTimes& times) {
  constexpr double kFar = 10;
  const auto& phases = log.phases;
  const double in_phases = phases.train_s + phases.validate_s + phases.checkpoint_s + phases.away_s;
  if (phases.training_seen && in_phases <= 0 && *times.end_ns <= *log.last_ns) {
    constexpr std::int64_t kFirstLines = 2;  // an epoch and its first step
    const bool first_step_failed = phases.startup_s > 0 && log.progress_lines <= kFirstLines;
    return !first_step_failed;
  }
  const Counter* steps = step_counter(log);
  return steps != nullptr && log.stated.step_s &&
         steps->advanced * *log.stated.step_s > kFar * seconds(*times.end_ns - *times.begin_ns);
}

/// A counter's advance per second of training; nothing when its lines have no times.
std::optional<double> rate_of(const Counter* counter) {
  if (counter == nullptr || counter->advanced <= 0 || counter->train_s_changed <= counter->train_s_first) {
    return std::nullopt;
  }
  return counter->advanced / (counter->train_s_changed - counter->train_s_first);
}

void add_steps(const TextLog& log, Signals& signals) {
  const Counter* steps = step_counter(log);
  if (steps != nullptr) {
    signals.steps = std::llround(steps->restarts == 0 ? steps->last : steps->advanced);
  }
  if (const auto rate = rate_of(steps)) {
    signals.step_s = 1 / *rate;
  } else if (const BarUse* bar = main_bar(log); bar != nullptr && counts_steps(*bar)) {
    signals.step_s = bar->seconds / bar->steps;
    signals.steps = std::llround(bar->steps);
  }
}

std::optional<double> setting_number(const TextLog& log, const std::string& knob) {
  const auto found = log.settings.find(knob);
  if (found == log.settings.end()) {
    return std::nullopt;
  }
  const char* begin = found->second.value.c_str();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  return end != begin && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// By counted samples; by epochs of a known size; or by steps of a known batch size.
void add_throughput(const TextLog& log, Signals& signals) {
  const Counter* epochs = log.counter("epoch");
  const auto epoch_rate = rate_of(epochs);
  const auto step_rate = log.stated.step_s ? std::optional(1 / *log.stated.step_s) : rate_of(step_counter(log));
  const auto sample_rate = rate_of(log.counter("sample"));
  const auto batch = setting_number(log, "batch.size");
  if (sample_rate) {
    signals.samples_per_s = sample_rate;
  } else if (const BarUse* bar = main_bar(log); bar != nullptr && bar->counts_samples && bar->seconds > 0) {
    signals.samples_per_s = bar->steps / bar->seconds;
  } else if (epoch_rate && log.rows_per_epoch) {
    signals.samples_per_s = *epoch_rate * *log.rows_per_epoch;
  } else if (step_rate && batch && *batch >= 1) {
    signals.samples_per_s = *step_rate * *batch;
  }
  if (batch && *batch >= 1) {
    signals.batch_samples = std::llround(*batch);
  }
  if (epochs != nullptr) {
    signals.epochs = epochs->last_had_loss ? epochs->last : std::max(0.0, epochs->last - 1);
  }
}

void add_settings(const TextLog& log, Signals& signals) {
  for (const auto& [knob, stated] : log.settings) {
    signals.settings[knob].configured = stated.value;
    signals.settings[knob].configured_at = place_in(log.file, stated.line);
  }
}

void add_device(const JobLogs& job, Signals& signals) {
  for (const TextLog& log : job.texts) {
    if (log.device) {
      signals.device_kind = *log.device == "hip" ? "rocm" : *log.device;
    }
    if (log.capability) {
      signals.gpu_capability = log.capability;
    }
  }
}

/// The scheduler knows the whole time; lines with times may begin late and end early.
void add_stated_wall(const JobLogs& job, Signals& signals) {
  for (const TextLog& log : job.texts) {
    const double unknown_s = log.stated_wall_s.value_or(0) - signals.wall_s;
    if (unknown_s > 0) {
      (signals.outcome == Outcome::kTimedOut && log.phases.training_seen ? signals.time.train : signals.time.other) +=
          unknown_s;
      signals.wall_s = *log.stated_wall_s;
    }
  }
}

}  // namespace

void add_progress(const JobLogs& job, const JobTimes& times, Signals& signals) {
  const TextLog* log = job.main_text();
  if (log == nullptr) {
    return;
  }
  add_device(job, signals);
  if (times.begin_ns && log->first_ns && *times.end_ns > *times.begin_ns && !times_miss_training(*log, times)) {
    add_timed_phases(*log, times, signals);
    add_untimed_validation(*log, signals);
  } else {
    add_untimed_phases(*log, signals);
  }
  add_steps(*log, signals);
  add_throughput(*log, signals);
  add_stated(*log, job.language, signals);
  add_stated_wall(job, signals);
  add_settings(*log, signals);
  add_how_far(*log, times, job.language, signals);
  if (log->progress_lines > 0 && signals.time.train <= 0) {
    signals.blind = "no-times";
  }
}

}  // namespace unidle::diagnose::detail
