// Trials of a unidle workload: `unidle-train` in a fresh process, observed.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// How long the trials are; the same for all with one effective batch, so that losses at the end compare.
struct TrialPlan {
  long long samples = 0;
  long long warmup_samples = 0;         // that the rate leaves out
  std::optional<double> epoch_samples;  // of the data set, where a run saw the end of one
  double expected_s = 5;                // of one trial of the configuration as it is
  bool whole_epochs = false;            // validation counts in proportion, so the rate includes it
};

/// What a short free run of the configuration showed.
struct Calibration {
  double rate = 0;                      // samples/s of the steps
  long long step_samples = 1;           // effective batch
  std::optional<double> epoch_samples;  // seen from the positions of the validations
};

/// Trials of about `target_s` after start-up. Where an epoch is short, they warm up for one (which also fills a feature
/// cache) and then measure whole epochs with their validations; otherwise a tenth is warm-up and validation stays out.
TrialPlan plan_trials(const Calibration& calibration, double target_s);

/// The plan for trials whose steps have so many samples: as it is, but in whole steps, and some of them. The engine
/// would take a larger batch smaller, or leave out the rest that is no whole step.
TrialPlan in_steps_of(TrialPlan plan, long long step_samples);

/// Not thread-safe. Everything the trials write goes into `scratch`.
class EngineRunner : public TrialRunner {
 public:
  struct Options {
    std::filesystem::path program;  // unidle-train
    std::filesystem::path config;
    knobs::Settings settings;  // of the configuration
    std::filesystem::path scratch;
    bool allow_semantic = false;
    double target_s = 4;  // length of a trial after start-up
  };

  explicit EngineRunner(Options options) : options_(std::move(options)) {}

  /// Runs the configuration for a few seconds and fixes the length of the trials. REQUIRES: before run(). Throws kChild
  /// with the program's own last words when it does not train; with its exit code's meaning kept: kInput when it is 2,
  /// kMissing when it is 3.
  const TrialPlan& calibrate(std::stop_token stop);
  /// In place of calibrate(): what an earlier search of the same configuration found.
  void resume(const TrialPlan& plan) { plan_ = plan; }
  TrialResult run(const knobs::Settings& changes, std::stop_token stop) override;
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
