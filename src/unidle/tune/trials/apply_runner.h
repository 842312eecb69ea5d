// Trials of any PyTorch program: its unchanged command, with knobs changed at run time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/account/run_data.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/experiment/protection.h"
#include "unidle/knobs/reach.h"
#include "unidle/record/record.h"
#include "unidle/tune/trials/edits.h"
#include "unidle/tune/trials/trial.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {

/// Steps of the first, short run of a program, and the least of a trial.
constexpr long long kCalibrationSteps = 30;

/// What a short run of the program showed, and the resulting length of trials.
struct ProgramPlan {
  long long steps = 0;                                                   // of a trial; a program may end earlier
  double step_s = 0;                                                     // mean, including waits and validation
  double startup_s = 0;                                                  // until the first step
  double expected_s = 0;                                                 // of a trial of the unchanged program
  double limit_s = 0;                                                    // a longer trial is ended
  knobs::Settings settings;                                              // in effect when the program runs as it is
  std::string device;                                                    // "cpu", "cuda", "rocm" or "unknown"
  experiment::Protection protection = experiment::Protection::kInPlace;  // of the user's files during trials
  /// "loader", "dataset", "function", "model", "validation", "optimizer", "zero_grad": file:line; "made_with";
  /// "replacement": a patch.
  std::map<std::string, std::string> places;
  knobs::OmittedOptions omitted;
  knobs::OptionChoices choices;
  Edits edits;              // for what nothing else changes; not kept when a search is interrupted
  knobs::Settings applied;  // to the running program when nothing is changed, by --apply; not kept either
};

/// The program's command with what the plan knows of it.
knobs::ProgramCommand command_of(const ProgramPlan& plan, std::vector<std::string> words);

/// How the changes reach the program, except for those that edits make.
knobs::Reach reach_of(const ProgramPlan& plan, const std::vector<std::string>& command, const knobs::Settings& changes);

/// Why the program would reject its command with `changes`; empty when it would not.
std::string why_refused(const ProgramPlan& plan, const std::vector<std::string>& command,
                        const knobs::Settings& changes);

/// True when the changes can reach the program, which accepts them, and have an effect on its device.
bool can_try(const ProgramPlan& plan, const std::vector<std::string>& command, const knobs::Settings& changes);

/// What a record of `command` and its diagnosis show of the program: settings, places, options and device.
ProgramPlan plan_from_record(const record::Reader& reader, const account::RunData& run,
                             const diagnose::Diagnosis& diagnosis, const std::vector<std::string>& command);

/// Optimiser steps per epoch; 0 when unknown.
double epoch_steps(const account::RunData& run, const knobs::Settings& settings);

/// Steps of a trial with `changes` that processes as many samples as one of `plan`, but at least 16.
long long steps_with(const ProgramPlan& plan, const knobs::Settings& changes);

/// Steps of a trial: about `target_s` of training, at least 30, and three epochs if they take at most 20 s, because
/// caching shows only in later epochs.
long long steps_of_trial(double step_s, double target_s, double epoch_steps = 0);

/// Runs each trial in a fresh process, which is stopped gracefully after the same number of steps. Not thread-safe.
class ApplyRunner : public TrialRunner {
 public:
  struct Options {
    std::vector<std::string> command;
    std::filesystem::path scratch;
    std::filesystem::path folder;  // working folder
    experiment::Protection protection = experiment::Protection::kInPlace;
    bool allow_semantic = false;
    double budget_s = 600;      // total budget: limits the length of trials
    double target_s = 6;        // of training per trial
    Edits edits = {};           // see ProgramPlan
    knobs::Settings applied;    // the same
    long long least_steps = 0;  // of a trial, where fewer would not show what is tried
  };

  explicit ApplyRunner(Options options) : options_(std::move(options)) {}

  /// Runs the program for 30 steps, or for least_steps. REQUIRES: before run(). Throws kChild with the program's last
  /// output when it fails, kInput when no PyTorch training step was seen, and kCancelled when stopped.
  const ProgramPlan& calibrate(std::stop_token stop);
  /// Replaces calibrate(): uses the plan of an earlier search of the same program.
  const ProgramPlan& resume(const ProgramPlan& plan);
  TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  std::optional<TrialResult> run_longest(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  void recall(const TrialResult& result) override { TrialResult(result).read_loss(losses_); }
  /// True when the calibration was a trial like all others, so that it is the baseline.
  bool has_baseline() const { return baseline_.has_value(); }
  /// True when the calibration did not fail but was too slow for the budget.
  bool too_slow() const { return too_slow_; }

 private:
  struct Ended;
  struct Length {
    long long steps = 0;
    double limit_s = 0;
    bool longest_first = false;  // the first batch consists of the longest samples
  };
  Ended start(const knobs::Settings& changes, const Length& length, std::stop_token stop);
  TrialResult run(const knobs::Settings& changes, const Length& length, std::stop_token stop);
  void read(const std::filesystem::path& record, const knobs::Settings& changes, TrialResult& result);

  Options options_;
  ProgramPlan plan_;
  int trials_ = 0;
  bool too_slow_ = false;
  std::optional<TrialResult> baseline_;  // the calibration, until it is asked for
  experiment::LossScale losses_;
};

}  // namespace unidle::tune
