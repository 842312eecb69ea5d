// The limits of a search: time and trials.
#pragma once

#include <cstdint>

#include "unidle/base/clock.h"

namespace unidle::tune {

/// Pairs that verify a gain beyond doubt.
constexpr int kLeastPairs = 3;
/// Of these, pairs that the search has not seen: what it chose by a run, that run cannot confirm alone.
constexpr int kLeastFreshPairs = 2;
/// Fresh pairs for which the first trial leaves time. With its own pair they verify a large gain.
constexpr int kFreshPairsOfFirstTrial = 1;

/// The total time, part of which is reserved for verification, and the number of trials. Not thread-safe.
class Budget {
 public:
  /// The search began `spent_s` ago. `clock` must outlive the budget.
  Budget(Clock& clock, double seconds, int trials, double spent_s = 0);

  /// Sets how long runs of the unchanged program and of the best settings so far take, and the fresh pairs that would
  /// verify a better trial.
  void expect(double baseline_s, double best_s, int fresh_pairs);

  double elapsed_s() const;
  /// True when the search may run another trial after `searched` ones, with `reserve` trials kept for later.
  bool allows_trial(int searched, int reserve) const { return searched + reserve < trials_ && allows_run(); }
  /// True when verification still fits after another run of the best settings so far.
  bool allows_run() const;
  /// True when `seconds` more fit, without a reserve.
  bool allows_s(double seconds) const { return elapsed_s() + seconds <= seconds_; }
  /// When a search trial is ended: it may not use what is kept back, unless it takes little more time than expected.
  double limit_of_trial_s() const;
  /// When any run is ended: a tenth of the total after it.
  double limit_s() const;
  /// One run of the unchanged program and one of the best settings so far.
  double pair_s() const { return baseline_s_ + best_s_; }
  /// Time reserved for the shortest verification.
  double kept_back_s() const { return fresh_pairs_ * pair_s(); }
  /// How many more runs it allows.
  int runs_left() const;
  /// The smallest budget that would allow `runs` now.
  double needed_s(int runs = 1) const { return elapsed_s() + runs * best_s_ + kept_back_s(); }
  double total_s() const { return seconds_; }
  int trials() const { return trials_; }
  double baseline_s() const { return baseline_s_; }

 private:
  Clock& clock_;
  std::int64_t start_ns_;
  double seconds_;
  int trials_;
  double baseline_s_ = 0;
  double best_s_ = 0;
  int fresh_pairs_ = kLeastPairs;
};

}  // namespace unidle::tune
