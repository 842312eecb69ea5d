// Runs of the program without changes: whether a change trains the same thing, beside how far it lies from itself.
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
  /// `settings`: of the configuration.
  explicit Repeats(knobs::Settings settings) : settings_(std::move(settings)) {}

  /// The first run is the baseline; a later one that lacks what the baseline reports could not stand beside it, and is
  /// left out. False for such a one.
  bool add(const TrialResult& run);
  const TrialResult& baseline() const { return runs_.front(); }
  /// Another run would tell little more: there are three, or two that agree.
  bool are_enough() const;

  /// Of a trial with `changes`, against all these runs.
  experiment::Parity parity_of(const TrialResult& changed, const knobs::Settings& changes) const;
  /// Of runs with `changes` against runs without. Of another effective batch, which somebody allowed, only that its
  /// loss is a number can be asked of a short trial.
  experiment::Parity parity_of(const std::vector<TrialResult>& baselines, const std::vector<TrialResult>& changed,
                               const knobs::Settings& changes) const;
  /// The samples of a step are others than the configuration's.
  bool changes_effective_batch(const knobs::Settings& changes) const;

 private:
  knobs::Settings settings_;
  std::vector<TrialResult> runs_;
};

}  // namespace unidle::tune
