// Verifies the winner against the unchanged program in alternating runs.
#pragma once

#include <optional>
#include <vector>

#include "unidle/base/stats.h"
#include "unidle/experiment/parity.h"
#include "unidle/experiment/ratio.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/search/budget.h"
#include "unidle/tune/search/repeats.h"
#include "unidle/tune/search/trial_log.h"

namespace unidle::tune {

/// From fewer pairs an interval says nothing (0.18 to 16 of two): their ratios are shown instead.
constexpr std::size_t kPairsOfAnInterval = 3;

struct Verification {
  std::vector<double> baseline;  // samples/s of each pair
  std::vector<double> winner;
  std::size_t of_search = 0;  // the first of these pairs, which the search made when it tried the winner
  double ratio = 1;           // median ratio of the pairs
  Interval interval{1, 1};    // 95 %
  bool clear = false;         // every pair gains more than noise can explain: fewer pairs than planned may do
  bool shown = false;         // the interval is above 1, the gain is worth a change, parity holds, the pairs suffice
  experiment::Parity parity;
  bool compared = false;                        // a pair had a loss or a metric to compare
  std::vector<TrialResult> baselines, winners;  // of the pairs, for joint comparison
  int failures = 0;                             // number of pairs with a failed run

  /// Changed over unchanged, of each pair.
  std::vector<double> ratios() const;
  /// The number of pairs made after the search.
  std::size_t fresh() const { return winner.size() - of_search; }
};

/// Not thread-safe.
class Verifier {
 public:
  struct Options {
    int pairs = 6;          // fewer when the gain is beyond doubt, more when it is unclear
    double least_gain = 0;  // a lower gain is not worth a change
  };

  /// All arguments must outlive it. `budget` ends the verification.
  Verifier(TrialLog& log, const Budget& budget, Repeats& repeats, Options options)
      : log_(log), budget_(budget), repeats_(repeats), options_(options) {}

  /// `of_search`: pairs that the search made of the unchanged program and the winner. They favour the winner, because
  /// they selected it, so they count only when each of three pairs gains more than noise can explain, two of them
  /// fresh (two and one when the budget ends); otherwise fresh pairs alone decide. Nothing when it was stopped, or when
  /// the budget allows no pair.
  std::optional<Verification> verify(const knobs::Settings& winner,
                                     const std::vector<experiment::PairOfRates>& of_search = {});

 private:
  bool is_over(const Verification& verification) const;
  bool run_pair(const knobs::Settings& changes, Verification& verification);
  bool fail_pair(const LoggedTrial& baseline, const LoggedTrial& winner, Verification& verification) const;
  bool compare_pair(const TrialResult& baseline, LoggedTrial& winner, Verification& verification);
  void take_stock(Verification& verification) const;

  TrialLog& log_;
  const Budget& budget_;
  Repeats& repeats_;
  Options options_;
};

}  // namespace unidle::tune
