// The search: few trials, changes that no trial confirms are removed, and the winner is verified.
#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/search/batch_search.h"
#include "unidle/tune/search/outcome.h"
#include "unidle/tune/search/trial_log.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

struct TunerOptions {
  int trials = 12;        // of the search, without verification
  double budget_s = 600;  // total, of which time for verification is reserved
  double spent_s = 0;     // part of the budget used before the search
  int pairs = 6;          // baseline and winner alternate this many times; fewer when the gain is beyond doubt
  int plateau = 5;        // the search stops after this many steps without a gain
  /// For judging a bundle, and for pairs that need no further ones. Repeated short trials on an otherwise idle machine
  /// differ by 1 to 2 %.
  Noise noise;
  double least_gain = 0;  // a lower verified gain is not worth a change
  /// When no trial was better, verify the fastest one, so that "nothing to gain" has an interval.
  bool verify_fastest = false;
  /// Possible sizes, see batch_choices(); empty when the batch size cannot be changed.
  std::vector<BatchChoice> batches;
  std::set<std::string> only;    // knobs to search, including those tied to them; empty: all
  bool follow_diagnoses = true;  // also tries what the diagnosis of a trial proposes
  double expected_s = 0;         // of the first run; 0: unknown, or that run is already measured
  /// Called once, with a sentence about what the budget buys.
  std::function<void(const std::string&)> say = {};
  /// A program is tuned, for which the result is advice; otherwise a configuration, to which it is written.
  bool of_program = false;
};

/// Not thread-safe.
class Tuner {
 public:
  using OnTrial = TrialLog::OnTrial;

  /// `runner` and `clock` must outlive the tuner. `settings`: the configuration's. `on_trial` is called on run()'s
  /// thread.
  Tuner(TrialRunner& runner, Clock& clock, knobs::Settings settings, std::vector<Proposal> proposals,
        TunerOptions options, OnTrial on_trial = {});

  /// Throws kChild when the baseline fails. A stop ends it after the running trial was stopped.
  TunerOutcome run(std::stop_token stop);

 private:
  TrialRunner& runner_;
  Clock& clock_;
  knobs::Settings settings_;
  std::vector<Proposal> proposals_;
  TunerOptions options_;
  OnTrial on_trial_;
};

}  // namespace unidle::tune
