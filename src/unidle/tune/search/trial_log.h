// Trials one after the other, and the log of them.
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
  /// "baseline", "diagnosis", "batch", "longest", "step", "removal"; "again" and "reference" of undecided ones, whose
  /// turns precede their own line; "verify-baseline", "verify-winner".
  std::string stage;
  knobs::Settings changes;  // against the configuration
  TrialResult result;
  std::string verdict;  // "baseline", "kept", "no gain", "reverted", "parity broken", "failed", "not taken"
  std::string why;
};

/// Relative difference that counts as one where nothing is repeated.
struct Noise {
  double quiet = 0.03;
  double disturbed = 0.08;  // the same while other processes use the CPUs
};

/// Runs trials and counts them; keeps those that are handed back with what became of them. Not thread-safe.
class TrialLog {
 public:
  /// Called after every trial, from the thread that adds it.
  using OnTrial = std::function<void(const LoggedTrial&)>;

  /// `runner` must outlive the log. `stop` ends the trial that runs, and there are no further ones.
  TrialLog(TrialRunner& runner, std::stop_token stop, Noise noise, OnTrial on_trial = {});

  /// Runs the program; the result is not in the log until it is added.
  LoggedTrial measure(const knobs::Settings& changes, const std::string& stage);
  /// See TrialRunner::run_longest. Nothing also where it was interrupted.
  std::optional<TrialResult> measure_longest(const knobs::Settings& changes);
  /// Appends it with the next number.
  void add(LoggedTrial trial);

  const std::vector<LoggedTrial>& trials() const { return trials_; }
  bool stopped() const { return stop_.stop_requested(); }
  /// All runs so far, those that were not logged with them.
  int runs() const { return runs_; }
  /// Runs that count against the trials of a search: repeating one and verifying the winner is not searching.
  int searched() const { return searched_; }
  int measured() const { return measured_; }
  /// Other processes used the CPUs meanwhile.
  int disturbed_runs() const { return disturbed_; }
  bool last_was_disturbed() const { return last_disturbed_; }
  /// More than a third of the runs were disturbed.
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
