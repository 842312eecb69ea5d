// Repeated runs of the unchanged program: their spread is the scale for whether a change trains the same thing.
#pragma once

#include <utility>
#include <vector>

#include "unidle/experiment/parity.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Not thread-safe.
class Repeats {
 public:
  /// `settings`: the configuration's.
  explicit Repeats(knobs::Settings settings) : settings_(std::move(settings)) {}

  /// Adds a run; the first is the baseline. Returns false and ignores a later run that lacks what the baseline reports.
  bool add(const TrialResult& run);
  const TrialResult& baseline() const { return runs_.front(); }
  /// True when another run would add little: there are three, or two that agree.
  bool are_enough() const;

  /// Compares a trial with `changes` to all these runs.
  experiment::Parity parity_of(const TrialResult& changed, const knobs::Settings& changes) const;
  /// Compares runs with `changes` to runs without. If the user allowed another effective batch, a short trial must only
  /// have a finite loss.
  experiment::Parity parity_of(const std::vector<TrialResult>& baselines, const std::vector<TrialResult>& changed,
                               const knobs::Settings& changes) const;
  /// True when a step has other samples than with the configuration.
  bool changes_effective_batch(const knobs::Settings& changes) const;

 private:
  knobs::Settings settings_;
  std::vector<TrialResult> runs_;
};

}  // namespace unidle::tune
