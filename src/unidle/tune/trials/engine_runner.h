// Trials of a unidle workload: runs `unidle-train` in a fresh process under observation.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// The length of trials, equal for all with the same effective batch, so that final losses are comparable.
struct TrialPlan {
  long long samples = 0;
  long long warmup_samples = 0;         // excluded from the rate
  std::optional<double> epoch_samples;  // of the data set, when a run saw the end of an epoch
  double expected_s = 5;                // of one trial of the unchanged configuration
  bool whole_epochs = false;            // validation counts in proportion, so the rate includes it
};

/// What a short unlimited run of the configuration showed.
struct Calibration {
  double rate = 0;                      // samples/s of the steps
  long long step_samples = 1;           // effective batch
  std::optional<double> epoch_samples;  // derived from the positions of validations
};

/// Plans trials of about `target_s` after start-up. With short epochs, a trial warms up for one (which also fills a
/// feature cache) and then measures whole epochs with their validations; otherwise a tenth is warm-up, and validation
/// is excluded.
TrialPlan plan_trials(const Calibration& calibration, double target_s);

/// The plan for trials with `step_samples` per step: the same, rounded to whole steps, with a minimum number. The
/// engine would shrink a larger batch, or leave out samples that do not fill a step.
TrialPlan in_steps_of(TrialPlan plan, long long step_samples);

/// Not thread-safe. Trials write only to `scratch`.
class EngineRunner : public TrialRunner {
 public:
  struct Options {
    std::filesystem::path program;  // unidle-train
    std::filesystem::path config;
    knobs::Settings settings;  // of the configuration
    std::filesystem::path scratch;
    bool allow_semantic = false;
    double budget_s = 600;  // of the whole search, so of the calibration as well
    double target_s = 4;    // length of a trial after start-up
  };

  explicit EngineRunner(Options options) : options_(std::move(options)) {}

  /// Runs the configuration for a few seconds and sets the length of trials. REQUIRES: before run(). When it does not
  /// train, throws with the program's last output: kInput for its exit code 2, kMissing for 3, otherwise kChild.
  const TrialPlan& calibrate(std::stop_token stop);
  /// Replaces calibrate(): uses the plan of an earlier search of the same configuration.
  void resume(const TrialPlan& plan) { plan_ = plan; }
  TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;
  void recall(const TrialResult& result) override { TrialResult(result).read_loss(losses_); }

 private:
  std::vector<std::string> arguments(const knobs::Settings& changes, long long samples, long long warmup) const;
  TrialPlan plan_for(const knobs::Settings& changes) const;

  Options options_;
  TrialPlan plan_;
  experiment::LossScale losses_;
  int trials_ = 0;
};

}  // namespace unidle::tune
