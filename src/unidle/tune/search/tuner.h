// The search: few trials, everything that a trial cannot confirm is taken back, and the winner is verified.
#pragma once

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
  int trials = 12;        // of the search; verification comes on top
  double budget_s = 600;  // of all; verification is kept back from it
  double spent_s = 0;     // of the budget, before the search
  int pairs = 6;          // baseline and winner in turns, this many times; fewer when the gain is beyond all doubt
  int plateau = 5;        // steps in a row without a gain, after which the search stops
  /// Of a bundle, and of pairs that need no further ones. Repeated short trials on an otherwise quiet machine differ by
  /// 1 to 2 %.
  Noise noise;
  double least_gain = 0;  // a verified ratio below 1 plus this is not worth a change
  /// When no trial was better, verify the fastest of them, so that "nothing to gain" comes with an interval.
  bool verify_fastest = false;
  /// Sizes that the program may be given, see batch_choices; empty where its batch cannot be changed.
  std::vector<BatchChoice> batches;
  std::set<std::string> only;             // knobs to search, with those that go with them; empty: all
  std::string subject = "configuration";  // what is tuned, for sentences
  std::string done = "written";           // what becomes of the result
};

/// Not thread-safe.
class Tuner {
 public:
  using OnTrial = TrialLog::OnTrial;

  /// `runner` and `clock` must outlive the tuner. `settings` is what the configuration says. `on_trial` is called from
  /// run()'s thread.
  Tuner(TrialRunner& runner, Clock& clock, knobs::Settings settings, std::vector<Proposal> proposals,
        TunerOptions options, OnTrial on_trial = {});

  /// Throws kChild when the baseline itself does not run. A stop ends it after the running trial was stopped.
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
