// The limits of a search: time and trials.
#pragma once

#include <cstdint>

#include "unidle/base/clock.h"

namespace unidle::tune {

/// Fewer pairs verify nothing; time for these is reserved.
constexpr int kLeastPairs = 3;

/// The total time, part of which is reserved for verification, and the number of trials. Not thread-safe.
class Budget {
 public:
  /// The search began `spent_s` ago. `clock` must outlive the budget.
  Budget(Clock& clock, double seconds, int trials, double spent_s = 0);

  /// Sets how long runs of the unchanged program and of the best settings so far take.
  void expect(double baseline_s, double best_s);

  double elapsed_s() const;
  /// True when the search may run another trial after `searched` ones, with `reserve` trials kept for later.
  bool allows_trial(int searched, int reserve) const { return searched + reserve < trials_ && allows_run(); }
  /// True when verification still fits after another run of the best settings so far.
  bool allows_run() const;
  /// True when `seconds` more fit, without a reserve.
  bool allows_s(double seconds) const { return elapsed_s() + seconds <= seconds_; }
  /// One run of the unchanged program and one of the best settings so far.
  double pair_s() const { return baseline_s_ + best_s_; }
  /// Time reserved for the shortest verification.
  double kept_back_s() const { return kLeastPairs * pair_s(); }
  /// The smallest budget that would allow a run now.
  double needed_s() const { return elapsed_s() + best_s_ + kept_back_s(); }
  double limit_s() const { return seconds_; }
  int trials() const { return trials_; }
  double baseline_s() const { return baseline_s_; }

 private:
  Clock& clock_;
  std::int64_t start_ns_;
  double seconds_;
  int trials_;
  double baseline_s_ = 0;
  double best_s_ = 0;
};

}  // namespace unidle::tune
