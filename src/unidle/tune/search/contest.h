// Compares a change with the best so far: measures, repeats if undecided, judges.
#pragma once

#include <string>
#include <vector>

#include "unidle/experiment/alternation.h"
#include "unidle/experiment/ratio.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/search/budget.h"
#include "unidle/tune/search/refusals.h"
#include "unidle/tune/search/repeats.h"
#include "unidle/tune/search/trial_log.h"

namespace unidle::tune {

/// The fastest settings that the search has found.
struct Best {
  knobs::Settings settings;                         // relative to the configuration
  TrialResult result;                               // its newest rate
  int run = 0;                                      // TrialLog::runs() at its newest run
  std::vector<experiment::PairOfRates> pairs = {};  // with the unchanged program, made when it was tried
};

enum class Judgement {
  kBetter,  // now the best
  kNoGain,
  kRejected,  // unusable whatever its speed
  kStopped,
};

/// Not thread-safe.
class Contest {
 public:
  /// All arguments must outlive it.
  Contest(TrialLog& log, Budget& budget, Repeats& repeats, Refusals& refusals)
      : log_(log), budget_(budget), repeats_(repeats), refusals_(refusals) {}

  /// Starts with the unchanged program, just measured; its run is the first of the repeats.
  void begin(const TrialResult& baseline);

  struct Verdict {
    Judgement judgement = Judgement::kStopped;
    double ratio = 1;  // relative to the previous best, over the runs that count
  };
  /// Accepts the settings when they are faster than the best so far by more than `margin` times the least gain that
  /// counts. `what`: in words, for the log. `confirm`: a single run in their favour is not enough.
  Verdict challenge(const knobs::Settings& changes, const std::string& stage, const std::string& what, double margin,
                    bool confirm = false);

  Best& best() { return best_; }
  /// When a further trial is ended.
  double limit_s() const { return budget_.limit_of_trial_s(); }
  /// Goes back to a previous best.
  void restore(Best best);

 private:
  bool may_repeat() const { return !log_.stopped() && budget_.allows_run(); }
  bool is_rejected(LoggedTrial& trial);
  bool learn_spread(const TrialResult& changed);
  bool take_turn(const knobs::Settings& changes, experiment::Alternation& turns);
  Verdict judge(LoggedTrial& trial, const experiment::Alternation& turns, double limit);
  void take(Best best);
  void reserve();

  TrialLog& log_;
  Budget& budget_;
  Repeats& repeats_;
  Refusals& refusals_;
  experiment::Scatter scatter_;
  Best best_;
};

}  // namespace unidle::tune
