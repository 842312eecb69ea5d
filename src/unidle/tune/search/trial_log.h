// Runs trials in sequence and logs them.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// One trial of the search, for the table and the record.
struct LoggedTrial {
  int index = 0;
  /// "baseline", "diagnosis", "batch", "longest", "step", "removal"; "again" and "reference" for repetitions of an
  /// undecided trial, logged before it; "verify-baseline", "verify-winner".
  std::string stage;
  knobs::Settings changes;  // relative to the configuration
  TrialResult result;
  double own_rate = 0;  // samples/s of this run; result.rate is that of the last of its repetitions
  /// "baseline", "kept", "no gain", "reverted", "needed", "parity broken", "failed", "not taken"; "held" of "longest",
  /// "turn" of a repetition, "winner" of "verify-winner".
  std::string verdict;
  std::string why;
};

/// Relative difference that counts as a difference when runs are not repeated.
struct Noise {
  double quiet = 0.03;
  double disturbed = 0.08;  // the same while other processes use the CPUs
};

/// Runs and counts trials, and keeps those that are added with their verdict. Not thread-safe.
class TrialLog {
 public:
  /// Called after every trial, on the thread that adds it.
  using OnTrial = std::function<void(const LoggedTrial&)>;

  /// `runner` must outlive the log. `stop` ends the running trial and prevents further ones.
  TrialLog(TrialRunner& runner, std::stop_token stop, Noise noise, OnTrial on_trial = {});

  /// Runs the program for at most `limit_s`; the result is logged only when it is added.
  LoggedTrial measure(const knobs::Settings& changes, const std::string& stage, double limit_s);
  /// See TrialRunner::run_longest. Also nothing when it was interrupted.
  std::optional<TrialResult> measure_longest(const knobs::Settings& changes, double limit_s);
  /// Appends the trial with the next number.
  void add(LoggedTrial trial);

  const std::vector<LoggedTrial>& trials() const { return trials_; }
  bool stopped() const { return stop_.stop_requested(); }
  /// The number of all runs so far, including those not logged.
  int runs() const { return runs_; }
  /// The number of runs that count as trials of the search: repetitions and verification do not.
  int searched() const { return searched_; }
  int measured() const { return measured_; }
  /// The number of runs during which other processes used the CPUs.
  int disturbed_runs() const { return disturbed_; }
  bool last_was_disturbed() const { return last_disturbed_; }
  /// True when more than a third of the runs were disturbed.
  bool is_disturbed() const { return disturbed_ * 3 > measured_; }
  double noise() const { return is_disturbed() ? noise_.disturbed : noise_.quiet; }

 private:
  TrialRunner& runner_;
  std::stop_token stop_;
  Noise noise_;
  OnTrial on_trial_;
  std::vector<LoggedTrial> trials_;
  int runs_ = 0;
  int searched_ = 0;
  int measured_ = 0;
  int disturbed_ = 0;
  bool last_disturbed_ = false;
};

}  // namespace unidle::tune
