#include "unidle/tune/search/tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/tune/search/batch_trials.h"
#include "unidle/tune/search/budget.h"
#include "unidle/tune/search/candidates.h"
#include "unidle/tune/search/contest.h"
#include "unidle/tune/search/refusals.h"
#include "unidle/tune/search/repeats.h"

namespace unidle::tune {

namespace {

/// A diagnosis may see new causes once the first ones are gone; more rounds have not been needed.
constexpr int kBundleRounds = 3;
/// For the batch size, in a search with other candidates.
constexpr int kBatchTrials = 6;
/// Factor of the gain that is worth a change. Smaller than for accepting one: several knobs with small gains must not
/// be removed one after the other.
constexpr double kRemovalMargin = -0.75;

knobs::Settings without(knobs::Settings settings, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    for (const std::string& knob : unit) {
      settings.erase(knob);
    }
  }
  return settings;
}

std::string words_of(std::span<const Unit> units) {
  std::vector<std::string> knobs;
  for (const Unit& unit : units) {
    knobs.insert(knobs.end(), unit.begin(), unit.end());
  }
  return fmt::format("the best so far without {}", fmt::join(knobs, " "));
}

knobs::Settings exact_part(const knobs::Settings& settings) {
  knobs::Settings exact = settings;
  exact.erase_if([](const auto& change) { return !knobs::is_exact({change}); });
  return exact;
}

/// The course of a search, from baseline to conclusion; its parts do the work.
class Search {
 public:
  Search(TrialRunner& runner, Clock& clock, const knobs::Settings& settings, const std::vector<Proposal>& proposals,
         TunerOptions options, const TrialLog::OnTrial& on_trial, std::stop_token stop);
  TunerOutcome run();

 private:
  void announce();
  void learn(const TrialResult& trial);
  void take_bundles();
  void take_batch();
  void take_steps();
  void take_removals();
  bool remove(std::span<const Unit> group);
  void split_and_remove(std::span<const Unit> group);
  void drop_ineffective_settings();
  void verify_best();
  bool take_fastest();
  TunerOutcome conclude();

  bool may_go_on(int reserve) const { return !log_.stopped() && budget_.allows_trial(log_.searched(), reserve); }
  int removal_reserve();
  std::vector<Unit> unconfirmed() { return candidates_.unconfirmed(contest_.best().settings, gains_); }
  Contest::Verdict challenge(const knobs::Settings& changes, const std::string& stage);
  std::vector<knobs::Change> changes_of(const knobs::Settings& best) const;

  knobs::Settings settings_;
  TunerOptions options_;
  TrialLog log_;
  Budget budget_;
  Repeats repeats_;
  Refusals refusals_;
  Contest contest_;
  Candidates candidates_;
  std::map<std::string, double> gains_;  // by knob, when measured alone
  int untried_ = 0;                      // candidates for which budget or trials did not suffice
  std::optional<Verification> verification_;
};

TunerOptions without_batches_unless_asked_for(TunerOptions options) {
  if (!is_asked_for(options.only, "batch.size")) {
    options.batches.clear();
  }
  return options;
}

Search::Search(TrialRunner& runner, Clock& clock, const knobs::Settings& settings,
               const std::vector<Proposal>& proposals, TunerOptions options, const TrialLog::OnTrial& on_trial,
               std::stop_token stop)
    : settings_(settings),
      options_(without_batches_unless_asked_for(std::move(options))),
      log_(runner, std::move(stop), options_.noise, on_trial),
      budget_(clock, options_.budget_s, options_.trials, options_.spent_s),
      repeats_(settings),
      contest_(log_, budget_, repeats_, refusals_),
      candidates_(settings, refusals_, {options_.only, !options_.batches.empty()}) {
  candidates_.add(proposals);
}

/// Says what the budget buys, as soon as the time of a run is known.
void Search::announce() {
  if (options_.say) {
    options_.say(what_it_buys(budget_));
  }
}

void Search::learn(const TrialResult& trial) {
  if (options_.follow_diagnoses) {
    candidates_.add(trial.suggestions);
  }
}

TunerOutcome Search::run() {
  if (options_.expected_s > 0) {
    budget_.expect(options_.expected_s, options_.expected_s, kFreshPairsOfFirstTrial);
    announce();
  }
  LoggedTrial baseline = log_.measure({}, "baseline", budget_.limit_s());
  if (baseline.result.interrupted) {
    return conclude();
  }
  if (!baseline.result.ok) {
    throw Error(ErrorCode::kChild, "baseline trial", baseline.result.problem,
                options_.of_program ? "the program must run as it is" : "the configuration must run as it is");
  }
  baseline.verdict = "baseline";
  repeats_.add(baseline.result);
  contest_.begin(baseline.result);
  if (options_.expected_s <= 0) {
    announce();
  }
  learn(baseline.result);
  log_.add(std::move(baseline));
  take_bundles();
  take_batch();
  take_steps();
  take_removals();
  drop_ineffective_settings();
  return conclude();
}

/// Tries `changes` on top of the best so far.
Contest::Verdict Search::challenge(const knobs::Settings& changes, const std::string& stage) {
  return contest_.challenge(knobs::overlaid(contest_.best().settings, changes), stage, knobs::describe(changes), 1);
}

void Search::take_bundles() {
  for (int round = 0; round < kBundleRounds && may_go_on(0); ++round) {
    const knobs::Settings before = contest_.best().settings;
    const knobs::Settings all = candidates_.bundle(before, false);
    if (all.empty()) {
      return;
    }
    const auto [judgement, ratio] = challenge(all, "diagnosis");
    if (judgement == Judgement::kBetter) {
      candidates_.mark_tried(all);
      learn(contest_.best().result);
      if (all.size() == 1 && !before.contains(all.begin()->first)) {
        gains_[all.begin()->first] = ratio;
      }
      continue;
    }
    if (judgement == Judgement::kNoGain && ratio > 1 - log_.noise()) {
      candidates_.mark_tried(all);  // no difference: that gains and losses cancel out exactly is unlikely and not worth
                                    // many trials
      return;
    }
    // Something in the bundle hurts. Changes of exact knobs are more likely to be good; the others are tried one by
    // one.
    const knobs::Settings exact = candidates_.bundle(contest_.best().settings, true);
    if (all.size() > 1 && !exact.empty() && exact != all && may_go_on(0)) {
      if (challenge(exact, "diagnosis").judgement == Judgement::kBetter) {
        candidates_.mark_tried(exact);
      }
    } else if (all.size() == 1) {
      candidates_.mark_tried(all);
    }
    return;
  }
}

void Search::take_batch() {
  BatchTrials trials(options_.batches, contest_, log_);
  // When only batch knobs were requested, they get all trials.
  const int most = options_.only.empty() ? kBatchTrials : options_.trials;
  const auto found = trials.find(most, [&] { return may_go_on(removal_reserve()); });
  if (!found) {
    return;
  }
  for (const auto& [knob, value] : found->choice.changes) {
    gains_[knob] = found->gain;
  }
  candidates_.add_tried(found->choice.changes, found->choice.reason, 1);
  learn(contest_.best().result);
}

void Search::take_steps() {
  int without_gain = 0;
  while (without_gain < options_.plateau) {
    const knobs::Settings before = contest_.best().settings;
    if (!may_go_on(removal_reserve())) {
      untried_ = candidates_.untried(before);
      return;
    }
    const auto changes = candidates_.take_next(before);
    if (!changes) {
      return;
    }
    const auto [judgement, ratio] = challenge(*changes, "step");
    if (judgement != Judgement::kBetter) {
      ++without_gain;
      candidates_.lower_alternatives(*changes);
      continue;
    }
    without_gain = 0;
    for (const auto& [knob, value] : *changes) {
      // Better than another new value is not necessarily better than the original one.
      if (!before.contains(knob)) {
        gains_[knob] = ratio;
      }
    }
    learn(contest_.best().result);
  }
}

/// Trials needed later to remove unconfirmed changes.
int Search::removal_reserve() {
  const std::size_t open = unconfirmed().size();
  return open < 2 ? 0 : std::min(kRemovalReserve, 1 + static_cast<int>(open - open / 2));
}

void Search::take_removals() {
  const std::vector<Unit> units = unconfirmed();
  if (units.size() < 2) {
    return;  // the trial of a single change has already confirmed it
  }
  // The least promising half is removed in one trial, the others one by one, beginning with the most promising.
  const auto all = std::span(units);
  const std::size_t half = units.size() / 2;
  const bool gone = remove(all.first(half));
  for (std::size_t i = units.size(); i-- > half;) {
    remove(all.subspan(i, 1));
  }
  if (!gone && half > 1) {
    split_and_remove(all.first(half));
  }
}

/// Finds the needed parts of a group that could not be removed as a whole.
void Search::split_and_remove(std::span<const Unit> group) {
  const auto lower = group.first(group.size() / 2);
  const auto upper = group.subspan(group.size() / 2);
  const bool lower_gone = remove(lower);
  if (!lower_gone && lower.size() > 1) {
    split_and_remove(lower);
  }
  // If the lower part was removed, a single upper knob must be the needed one.
  const bool upper_gone = (!lower_gone || upper.size() > 1) && remove(upper);
  if (!upper_gone && upper.size() > 1) {
    split_and_remove(upper);
  }
}

/// True when the whole group was removed.
bool Search::remove(std::span<const Unit> group) {
  if (group.empty() || !may_go_on(0)) {
    return false;
  }
  Best& best = contest_.best();
  const double before = best.result.rate;
  // A single lucky run must not remove several changes.
  const bool confirm = group.size() > 1;
  const auto [judgement, ratio] =
      contest_.challenge(without(best.settings, group), "removal", words_of(group), kRemovalMargin, confirm);
  if (judgement == Judgement::kBetter) {
    if (best.result.rate < before * (1 + log_.noise())) {
      // Both rates are of equally good settings, and the better of several noisy rates is biased upwards.
      best.result.rate = (best.result.rate + before) / 2;
    }
    return true;
  }
  if (judgement == Judgement::kNoGain && group.size() == 1 && ratio > 0) {
    for (const std::string& knob : group.front()) {
      gains_[knob] = 1 / ratio;
    }
  }
  return false;
}

/// Without workers, their other settings have no effect, whatever a noisy trial said.
void Search::drop_ineffective_settings() {
  knobs::Settings& best = contest_.best().settings;
  if (knobs::overlaid(settings_, best).integer("loader.workers") == 0) {
    best.erase("loader.prefetch_factor");
    best.erase("loader.persistent_workers");
  }
}

void Search::verify_best() {
  knobs::Settings& best = contest_.best().settings;
  Verifier verifier(log_, budget_, repeats_, {options_.pairs, options_.least_gain});
  verification_ = verifier.verify(best, contest_.best().pairs);
  const knobs::Settings exact = exact_part(best);
  const bool parity_broke = verification_ && !verification_->parity.held;
  if (parity_broke && !exact.empty() && exact != best) {
    // Changes of rounding are the probable cause; the others may still be a gain.
    best = exact;
    verification_ = verifier.verify(best);
  }
}

/// When no trial was better, the fastest becomes the best, for verification. False when there is none.
bool Search::take_fastest() {
  const LoggedTrial* fastest = nullptr;
  for (const LoggedTrial& trial : log_.trials()) {
    if (trial.verdict == "no gain" && !changes_of(trial.changes).empty() &&
        (fastest == nullptr || trial.result.rate > fastest->result.rate)) {
      fastest = &trial;
    }
  }
  if (fastest != nullptr) {
    contest_.best().settings = fastest->changes;
  }
  return fastest != nullptr;
}

TunerOutcome Search::conclude() {
  knobs::Settings& best = contest_.best().settings;
  const bool found_better = !changes_of(best).empty();
  const bool time_left = budget_.allows_s(2 * budget_.baseline_s());
  if (!log_.stopped() && (found_better || (options_.verify_fastest && time_left && take_fastest()))) {
    verify_best();
  }
  const bool shown = verification_ && verification_->shown;
  if (!found_better && !shown) {
    best = {};
  }
  TunerOutcome outcome;
  outcome.trials = log_.trials();
  outcome.verification = verification_;
  outcome.best = best;
  outcome.not_taken = refusals_.sentences();
  outcome.interrupted = log_.stopped();
  outcome.all_failed =
      outcome.trials.size() > 1 && std::all_of(outcome.trials.begin() + 1, outcome.trials.end(),
                                               [](const LoggedTrial& trial) { return trial.verdict == "failed"; });
  if (shown && !outcome.interrupted) {
    outcome.changes = changes_of(best);
  }
  outcome.conclusion = conclusion_of(outcome, {options_.of_program,
                                               !candidates_.empty(),
                                               log_.searched(),
                                               untried_,
                                               found_better,
                                               repeats_.changes_effective_batch(best),
                                               log_.is_disturbed(),
                                               log_.disturbed_runs(),
                                               log_.measured(),
                                               {budget_.baseline_s(), budget_.kept_back_s(), budget_.total_s(),
                                                budget_.needed_s(), budget_.trials()}});
  return outcome;
}

std::vector<knobs::Change> Search::changes_of(const knobs::Settings& best) const {
  std::vector<knobs::Change> changes;
  for (const auto& [knob, value] : best) {
    const auto from = settings_.in_force(knob);
    if (from == value) {
      continue;
    }
    auto change = knobs::change_of(
        knob, from, value, candidates_.reason_of(knob, value).value_or("faster together with the other changes"));
    if (const auto gain = gains_.find(knob); gain != gains_.end()) {
      change.gain = gain->second;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

Tuner::Tuner(TrialRunner& runner, Clock& clock, knobs::Settings settings, std::vector<Proposal> proposals,
             TunerOptions options, OnTrial on_trial)
    : runner_(runner),
      clock_(clock),
      settings_(std::move(settings)),
      proposals_(std::move(proposals)),
      options_(std::move(options)),
      on_trial_(std::move(on_trial)) {}

TunerOutcome Tuner::run(std::stop_token stop) {
  return Search(runner_, clock_, settings_, proposals_, options_, on_trial_, std::move(stop)).run();
}

}  // namespace unidle::tune
