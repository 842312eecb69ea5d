// What a search found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/search/trial_log.h"
#include "unidle/tune/search/verifier.h"

namespace unidle::tune {

struct TunerOutcome {
  std::vector<LoggedTrial> trials;
  std::vector<Change> changes;  // what to write; empty when nothing is shown to be better
  std::optional<Verification> verification;
  knobs::Settings best;                // of the search, verified or not
  std::vector<std::string> not_taken;  // knobs that were asked for and were not in force, with both values
  bool interrupted = false;
  bool all_failed = false;  // every change that was tried: nothing is known of any
  std::string conclusion;   // one sentence
};

/// Why nothing but the program as it is was run.
struct FirstTrial {
  double seconds = 0;
  double kept_back_s = 0;  // for verification
  double budget_s = 0;
  double needed_s = 0;  // the budget that would have allowed a second one
  int trials = 0;       // of the search, at most
};

/// What the conclusion needs beside the outcome itself.
struct Circumstances {
  std::string subject;                 // what was tuned
  std::string done;                    // what becomes of the result
  bool had_candidates = false;         // something could have been changed
  int searched = 0;                    // trials, the baseline with them
  bool found_better = false;           // a trial was better, before any verification
  bool other_effective_batch = false;  // of the best
  bool disturbed = false;              // more than a third of the runs were
  int disturbed_runs = 0;
  int measured = 0;
  FirstTrial first;
};

/// One sentence: the gain with its interval, or why there is none.
std::string conclusion_of(const TunerOutcome& outcome, const Circumstances& circumstances);

}  // namespace unidle::tune
