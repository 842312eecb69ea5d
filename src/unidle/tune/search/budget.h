// What a search may take: time and trials.
#pragma once

#include <cstdint>

#include "unidle/base/clock.h"

namespace unidle::tune {

/// Fewer pairs than this verify nothing; time for them is kept back.
constexpr int kLeastPairs = 3;

/// The time of everything, of which verification is kept back, and the trials of the search. Not thread-safe.
class Budget {
 public:
  /// Began `spent_s` ago. `clock` must outlive it.
  Budget(Clock& clock, double seconds, int trials, double spent_s = 0);

  /// How long runs of the program as it is and of the best so far take.
  void expect(double baseline_s, double best_s);

  double elapsed_s() const;
  /// One of so many trials of the search, `searched` of which were made, with `reserve` of them kept for later ones.
  bool allows_trial(int searched, int reserve) const { return searched + reserve < trials_ && allows_run(); }
  /// A run of the best so far, after which there is time to verify it.
  bool allows_run() const;
  /// So much time, with nothing kept back.
  bool allows_s(double seconds) const { return elapsed_s() + seconds <= seconds_; }
  /// One run of the program as it is, and one of the best so far.
  double pair_s() const { return baseline_s_ + best_s_; }
  /// What is kept back for the least verification.
  double kept_back_s() const { return kLeastPairs * pair_s(); }
  /// The least budget that would allow a run now.
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
