// The search: few trials, everything that a trial cannot confirm is taken back, and the winner is verified.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/stats.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/search/batch_search.h"
#include "unidle/tune/search/parity.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fewer pairs than this verify nothing; time for them is kept back.
constexpr int kLeastPairs = 3;

struct TunerOptions {
  int trials = 12;        // of the search; verification comes on top
  double budget_s = 600;  // of all; verification is kept back from it
  int pairs = 6;          // baseline and winner in turns, this many times; fewer when the gain is beyond all doubt
  int plateau = 5;        // steps in a row without a gain, after which the search stops
  /// Relative difference that counts as one where nothing is repeated: of a bundle, and of pairs that need no further
  /// ones. Repeated short trials on an otherwise quiet machine differ by 1 to 2 %.
  double noise = 0.03;
  double disturbed_noise = 0.08;  // the same while other processes use the CPUs
  ParityBands bands;
  double least_gain = 0;  // a verified ratio below 1 plus this is not worth a change
  /// When no trial was better, verify the fastest of them, so that "nothing to gain" comes with an interval.
  bool verify_fastest = false;
  /// Sizes that the program may be given, see batch_choices; empty where its batch cannot be changed.
  std::vector<BatchChoice> batches;
  std::set<std::string> only;             // knobs to search, with those that go with them; empty: all
  std::string subject = "configuration";  // what is tuned, for sentences
  std::string done = "written";           // what becomes of the result
};

/// One trial of the search, for the table and the record.
struct LoggedTrial {
  int index = 0;
  /// "baseline", "diagnosis", "batch", "longest", "step", "removal"; "again" and "reference" of undecided ones, whose
  /// turns precede their own line; "verify-baseline", "verify-winner".
  std::string stage;
  knobs::Settings changes;  // against the configuration
  TrialResult result;
  std::string verdict;  // "baseline", "kept", "no gain", "reverted", "parity broken", "failed", "not taken"
  std::string why;
};

struct Verification {
  std::vector<double> baseline;  // samples/s, of each pair
  std::vector<double> winner;
  double ratio = 1;         // median of the ratios of the pairs
  Interval interval{1, 1};  // 95 %, bootstrap over the pairs
  bool clear = false;       // every pair shows a gain that noise cannot make
  bool shown = false;       // the interval lies above 1, the gain is worth it and parity holds
  Parity parity;
  bool compared = false;                        // a pair had a loss or a metric to compare
  std::vector<TrialResult> baselines, winners;  // of the pairs, for comparing them together
  int failures = 0;                             // pairs of which one did not run
};

struct TunerOutcome {
  std::vector<LoggedTrial> trials;
  std::vector<Change> changes;  // what to write; empty when nothing is shown to be better
  std::optional<Verification> verification;
  knobs::Settings best;                // of the search, verified or not
  std::vector<std::string> not_taken;  // knobs that were asked for and were not in force, with both values
  bool interrupted = false;
  std::string conclusion;  // one sentence
};

class Tuner {
 public:
  /// Called after every trial, from run()'s thread.
  using OnTrial = std::function<void(const LoggedTrial&)>;

  /// `runner` and `clock` must outlive the tuner. `settings` is what the configuration says. Not thread-safe.
  Tuner(TrialRunner& runner, Clock& clock, knobs::Settings settings, std::vector<Proposal> proposals,
        TunerOptions options, OnTrial on_trial = {});

  /// Throws kChild when the baseline itself does not run. A stop ends it after the running trial was stopped.
  TunerOutcome run(std::stop_token stop);

 private:
  struct Candidate {
    knobs::Settings changes;
    std::string reason;
    double promise = 0;
    bool first = false;  // worth trying before anything was measured
    bool tried = false;
  };
  /// Knobs that are taken back together.
  using Unit = std::vector<std::string>;
  /// Runs of a change and of the best so far alternately.
  struct Turns {
    TrialResult change;     // the newest
    TrialResult reference;  // the same of the best so far
    std::vector<double> ratios;
    bool neighbours = false;  // the ratios are of runs one after the other; otherwise the only one is to an older run
    bool reference_next = true;
    bool confirm = false;  // a single run in favour is not enough
    int taken = 0;
  };
  enum class Judgement { kBetter, kNoGain, kRejected, kStopped };

  bool is_asked_for(const std::string& knob) const;
  void add_candidate(Candidate candidate);
  void add_suggestions(const TrialResult& result);
  bool is_left_to_the_batch_search(const knobs::Settings& changes) const;
  bool is_new(const Candidate& candidate) const;
  knobs::Settings bundle(bool exact_only) const;
  void mark_tried(const knobs::Settings& changes);

  void take_bundles(std::stop_token stop);
  void take_batch(std::stop_token stop);
  bool has_room_for_the_longest(std::stop_token stop);
  BatchSearch::Result try_batch(const BatchChoice& choice, std::stop_token stop);
  void take_steps(std::stop_token stop);
  Candidate* next_step();
  void take_removals(std::stop_token stop);
  bool remove_units(std::span<const Unit> group, std::stop_token stop);
  void split_and_remove(std::span<const Unit> group, std::stop_token stop);
  void drop_dead_letters();
  std::vector<Unit> unconfirmed() const;
  int removal_reserve() const;
  double promise_of(const Unit& unit) const;

  LoggedTrial measure(const knobs::Settings& changes, const std::string& stage, std::stop_token stop);
  Judgement try_settings(const knobs::Settings& changes, const std::string& stage, const std::string& what,
                         double margin, std::stop_token stop, bool confirm = false);
  Judgement judge(LoggedTrial& trial, double ratio, double margin);
  bool rejected(LoggedTrial& trial, std::stop_token stop);
  bool changes_effective_batch(const knobs::Settings& changes) const;
  Parity parity_of(const std::vector<TrialResult>& baselines, const std::vector<TrialResult>& changed,
                   const knobs::Settings& changes) const;
  void add_repeat(const TrialResult& run);
  bool learn_spread(const TrialResult& changed, std::stop_token stop);
  bool undecided(const Turns& turns, double margin) const;
  double scatter() const;
  bool take_turn(const knobs::Settings& changes, Turns& turns, std::stop_token stop);
  bool may_repeat(std::stop_token stop) const;
  bool disturbed() const;
  double noise() const { return disturbed() ? options_.disturbed_noise : options_.noise; }
  void drop_what_did_not_take(LoggedTrial& trial);
  void log(LoggedTrial trial);

  std::optional<Verification> verify(std::stop_token stop);
  bool verify_pair(Verification& verification, std::stop_token stop);
  bool compare_pair(Verification& verification, const TrialResult& baseline, LoggedTrial& winner);
  void take_stock(Verification& verification) const;
  void verify_best(std::stop_token stop);
  bool take_fastest();
  void conclude(std::stop_token stop);

  bool may_go_on(std::stop_token stop, int reserve) const;
  double elapsed_s() const;
  double verification_s() const;
  std::vector<Change> changes_of(const knobs::Settings& best) const;

  TrialRunner& runner_;
  Clock& clock_;
  knobs::Settings settings_;
  std::vector<Candidate> candidates_;
  TunerOptions options_;
  OnTrial on_trial_;

  std::int64_t start_ns_ = 0;
  int search_trials_ = 0;
  TunerOutcome outcome_;
  TrialResult baseline_;
  std::vector<TrialResult> repeats_;     // runs without changes, the baseline first
  TrialResult incumbent_;                // of outcome_.best; its newest rate
  std::map<std::string, double> gains_;  // by knob, measured alone
  std::set<std::string> refused_;        // "knob=value" that does not take
  double last_ratio_ = 1;                // of the last trial judged, to the best so far
  int measured_trials_ = 0;              // with those that were repeated
  int disturbed_trials_ = 0;
  bool incumbent_is_newest_ = false;  // the newest run was of outcome_.best
  bool last_disturbed_ = false;       // of the newest trial
  /// Relative differences of two runs of one setting with one of another between them; at first what is usual.
  std::vector<double> apart_ = {0.02, 0.02};
};

}  // namespace unidle::tune
