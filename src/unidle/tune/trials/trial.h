// One measured run of a training program.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/experiment/equal_samples.h"
#include "unidle/experiment/measurement.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/suggestions.h"

namespace unidle::tune {

/// A trial that takes this many times what the baseline takes hangs, or is hopeless.
constexpr double kHopeless = 4;

struct TrialResult {
  bool ok = false;
  std::string problem;              // why not, in one line
  double rate = 0;                  // samples/s that the search maximises: everything after start-up counted in
  std::optional<double> step_rate;  // samples/s of the training steps alone
  std::optional<double> loss;       // at the end of the trial
  /// Standard error of the loss beside that of the first trial: 0 where both are the same step by step, more where
  /// samples are drawn or changed at random.
  double loss_error = 0;
  double loss_fall = 0;                // how far the first trial's loss came down until then
  std::map<long long, double> losses;  // as the program reported them, by samples seen
  std::map<std::string, double> metrics;
  knobs::Settings effective;                   // as the live program reports it
  std::map<std::string, std::string> refused;  // knobs that are not in force, with the reason
  double seconds = 0;                          // wall time of the whole trial, start-up included
  std::optional<double> validation_share;      // of the time after start-up
  /// CPUs that other processes used meanwhile; they take from the trial what they use.
  std::optional<double> others_cpus;
  std::vector<Suggestion> suggestions;
  bool lengths_vary = false;  // batches had more shapes than full ones and a last one have
  std::string longest;        // of run_longest: what it had in its first batch; empty where all samples are alike
  bool interrupted = false;   // stopped on request: no measurement

  experiment::Measurement measurement() const { return {rate, others_cpus}; }
  /// What the trial learned, beside trials of as many samples.
  experiment::Learned learned() const;
  /// Fills in the loss from `losses`, where there are enough to compare.
  void read_loss(experiment::LossScale& scale);
};

/// Runs trials. Not thread-safe. All trials of one runner see the same number of samples, so that losses compare.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  /// A fresh process with `changes` on top of the configuration. A trial that fails is a result, not an exception.
  virtual TrialResult run(const knobs::Settings& changes, std::stop_token stop) = 0;
  /// A few steps, the first of which has the longest samples that there are: whether there is room for them. Nothing
  /// where the runner cannot arrange that.
  virtual std::optional<TrialResult> run_longest(const knobs::Settings& /*changes*/, std::stop_token /*stop*/) {
    return std::nullopt;
  }
  /// A result of an earlier search with the same program stands for a run.
  virtual void recall(const TrialResult& /*result*/) {}
};

}  // namespace unidle::tune
