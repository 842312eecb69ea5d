// The outcome of a search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/search/budget.h"
#include "unidle/tune/search/trial_log.h"
#include "unidle/tune/search/verifier.h"

namespace unidle::tune {

/// Trials reserved for removing changes, at most.
constexpr int kRemovalReserve = 5;

struct TunerOutcome {
  std::vector<LoggedTrial> trials;
  std::vector<knobs::Change> changes;  // changes to write; empty when no improvement was shown
  std::optional<Verification> verification;
  knobs::Settings best;                // of the search, verified or not
  std::vector<std::string> not_taken;  // requested knobs that were not in effect, with both values
  bool interrupted = false;
  bool all_failed = false;  // every trial of a change failed, so nothing is known of any
  std::string conclusion;   // one sentence
};

/// Why only the unchanged program was run.
struct FirstTrial {
  double seconds = 0;
  double kept_back_s = 0;  // reserved for verification
  double budget_s = 0;
  double needed_s = 0;  // the budget that would have allowed a second one
  int trials = 0;       // the limit of the search
};

/// What the conclusion needs besides the outcome.
struct Circumstances {
  bool of_program = false;             // see TunerOptions
  bool had_candidates = false;         // there was something to change
  int searched = 0;                    // trials, including the baseline
  int untried = 0;                     // changes for which budget or trials did not suffice
  bool found_better = false;           // a trial was better, before verification
  bool other_effective_batch = false;  // the best settings change it
  bool disturbed = false;              // more than a third of the runs were disturbed
  int disturbed_runs = 0;
  int measured = 0;
  FirstTrial first;
};

/// One sentence at the start: how many trials the budget buys, and what is kept for verification.
std::string what_it_buys(const Budget& budget);

/// One sentence: the gain with its interval, or why there is none. That there is nothing to gain is said only when all
/// promising changes were tried on a quiet machine, and the interval leaves no room for a gain.
std::string conclusion_of(const TunerOutcome& outcome, const Circumstances& circumstances);

}  // namespace unidle::tune
