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

/// A trial that takes this many times as long as the baseline hangs or is hopeless.
constexpr double kHopeless = 4;

/// The effective side of account::KnobReadings: all that a search keeps of it.
using ReportedSettings = std::map<std::string, std::string>;

struct TrialResult {
  bool ok = false;
  std::string problem;  // why not, in one line
  /// Samples/s that the search maximises: includes validation and checkpoints, except for an engine trial that is
  /// shorter than an epoch.
  double rate = 0;
  std::optional<double> step_rate;  // samples/s of training steps only
  std::optional<double> loss;       // at the end of the trial
  /// Standard error of the loss relative to the first trial: 0 when both have the same samples step by step, larger
  /// when samples are drawn or augmented at random.
  double loss_error = 0;
  double loss_fall = 0;                // how far the first trial's loss had fallen by then
  std::map<long long, double> losses;  // as reported by the program, by samples seen
  std::map<std::string, double> metrics;
  ReportedSettings effective;
  std::map<std::string, std::string> refused;  // knobs that are not in effect, with the reason
  double seconds = 0;                          // wall time of the whole trial, including start-up
  std::optional<double> validation_share;      // of the time after start-up
  std::optional<double> others_cpus;           // CPUs that other processes used during the trial
  std::optional<double> own_cpus;              // CPUs that the trial used
  std::vector<Proposal> suggestions;
  bool lengths_vary = false;  // batches had more shapes than full batches and a last one
  std::string longest;       // for run_longest: what the first batch contained; empty when all samples are equally long
  bool interrupted = false;  // stopped on request: not a measurement

  experiment::Measurement measurement() const { return {rate, others_cpus, own_cpus}; }
  /// Replaces rate and CPUs by those of a newer run.
  void remeasure(const experiment::Measurement& run);
  /// What the trial learned, for comparison with trials of as many samples.
  experiment::Learned learned() const;
  /// Sets the loss from `losses` when there are enough to compare.
  void read_loss(experiment::LossScale& scale);
};

/// Runs trials. Not thread-safe. All trials of a runner process the same number of samples, so that losses are
/// comparable.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  /// Runs a fresh process with `changes` on top of the configuration, and ends it after `limit_s`. A failed trial is a
  /// result, not an exception.
  virtual TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) = 0;
  /// Runs a few steps, the first with the longest samples, to test whether they fit into memory. Nothing when the
  /// runner cannot do that.
  virtual std::optional<TrialResult> run_longest(const knobs::Settings& /*changes*/, double /*limit_s*/,
                                                 std::stop_token /*stop*/) {
    return std::nullopt;
  }
  /// Uses a result of an earlier search of the same program as if it had been run.
  virtual void recall(const TrialResult& /*result*/) {}
};

}  // namespace unidle::tune
