// One trial of the search: measuring, repeating, judging.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/stats.h"
#include "unidle/diagnose/policy.h"
#include "unidle/knobs/knob.h"
#include "unidle/tune/search/tuner.h"

namespace unidle::tune {

namespace {

/// Less than this share of the speed of the best so far may be the machine's doing rather than a knob's.
constexpr double kSuspicious = 0.85;
/// A gain of less is not worth a change.
constexpr double kWorth = 0.01;
/// Ratios of neighbouring runs after which the median decides, however far apart they are.
constexpr std::size_t kMostRatios = 7;
/// Ratios with which a second run of a change comes in.
constexpr std::size_t kConfirming = 3;
/// Standard errors: a median that is further than this from the limit decides.
constexpr double kClearance = 1;
/// How much further than neighbours two runs are apart that have others between them.
constexpr double kStale = 1.5;
/// Two runs of one setting that are further apart than this tell of an accident rather than of the usual scatter.
constexpr double kWidest = 0.2;
/// The standard deviation of a normal distribution for a mean absolute deviation of 1.
constexpr double kOfMeanDeviation = 1.25;
/// CPUs in use by others from which on a trial counts as disturbed.
constexpr double kDisturbingCpus = diagnose::Policy{}.others_cpus;
/// Runs without changes that tell how far a program lies from itself: the deviation of three is within a factor of two
/// mostly, and each costs as much as a trial.
constexpr std::size_t kMostRepeats = 3;
/// Turns in all, those that say nothing with them.
constexpr int kMostTurns = 9;

/// Others did not use the CPUs during one of the runs only: then its rate says nothing about the other's.
bool comparable(const TrialResult& a, const TrialResult& b) {
  return std::abs(a.others_cpus.value_or(0) - b.others_cpus.value_or(0)) <= kDisturbingCpus;
}

}  // namespace

LoggedTrial Tuner::measure(const knobs::Settings& changes, const std::string& stage, std::stop_token stop) {
  LoggedTrial trial;
  trial.index = static_cast<int>(outcome_.trials.size()) + 1;
  trial.stage = stage;
  trial.changes = changes;
  trial.result = runner_.run(changes, stop);
  trial.result.interrupted = trial.result.interrupted || stop.stop_requested();
  ++measured_trials_;
  incumbent_is_newest_ = false;
  last_disturbed_ = trial.result.others_cpus.value_or(0) > kDisturbingCpus;
  disturbed_trials_ += last_disturbed_;
  search_trials_ += stage.starts_with("verify") || stage == "again" || stage == "reference" ? 0 : 1;
  return trial;
}

void Tuner::log(LoggedTrial trial) {
  outcome_.trials.push_back(std::move(trial));
  if (on_trial_) {
    on_trial_(outcome_.trials.back());
  }
}

/// Takes the settings when they are faster than the best so far by more than `margin` times what is worth a change.
/// What one trial leaves open, or with `confirm` says in their favour, is decided by turns of both, each compared with
/// its neighbours only, so that a machine that gets slower meanwhile is no argument.
Tuner::Judgement Tuner::try_settings(const knobs::Settings& changes, const std::string& stage, const std::string& what,
                                     double margin, std::stop_token stop, bool confirm) {
  const bool neighbours = incumbent_is_newest_;
  const int first_index = static_cast<int>(outcome_.trials.size());
  LoggedTrial trial = measure(changes, stage, stop);
  trial.why = what;
  if (trial.result.interrupted) {
    return Judgement::kStopped;
  }
  if (rejected(trial, stop)) {
    trial.index = static_cast<int>(outcome_.trials.size()) + 1;
    log(std::move(trial));
    return Judgement::kRejected;
  }
  Turns turns{trial.result, incumbent_, {}, neighbours};
  turns.confirm = confirm;
  if (comparable(turns.change, turns.reference)) {
    turns.ratios.push_back(turns.change.rate / turns.reference.rate);
  }
  while (undecided(turns, margin) && may_repeat(stop) && take_turn(trial.changes, turns, stop)) {
  }
  if (stop.stop_requested()) {
    return Judgement::kStopped;
  }
  trial.index = static_cast<int>(outcome_.trials.size()) + 1;
  trial.result.rate = turns.change.rate;
  trial.result.others_cpus = turns.change.others_cpus;
  incumbent_.rate = turns.reference.rate;
  incumbent_.others_cpus = turns.reference.others_cpus;
  trial.why += turns.ratios.size() > 1 ? fmt::format("; median of {} turns", turns.ratios.size()) : "";
  const double ratio = turns.ratios.empty() ? turns.change.rate / turns.reference.rate : median(turns.ratios);
  const Judgement judgement = judge(trial, ratio, margin);
  if (judgement == Judgement::kBetter) {
    incumbent_ = trial.result;
    outcome_.best = trial.changes;
  }
  const bool others_between = turns.taken == 0 && trial.index > first_index + 1;
  incumbent_is_newest_ = !others_between && (judgement == Judgement::kBetter) == turns.reference_next;
  log(std::move(trial));
  return judgement;
}

bool Tuner::undecided(const Turns& turns, double margin) const {
  const double limit = 1 + margin * kWorth;
  const auto& ratios = turns.ratios;
  if (turns.taken >= kMostTurns || ratios.size() >= kMostRatios) {
    return false;
  }
  if (ratios.empty() || (turns.confirm && ratios.size() < kConfirming && ratios.back() > limit)) {
    return true;
  }
  const double middle = median(ratios);
  const bool slow = ratios.size() < kConfirming && middle < kSuspicious;
  const bool lucky = turns.confirm && middle > limit && *std::min_element(ratios.begin(), ratios.end()) < limit;
  const bool stale = !turns.neighbours && last_disturbed_;
  const double error = scatter() * (turns.neighbours ? 1 : kStale) / std::sqrt(static_cast<double>(ratios.size()));
  return slow || lucky || stale || std::abs(middle - limit) < kClearance * error;
}

/// Of the ratio of two runs one after the other, by how far apart those of one setting have been so far.
double Tuner::scatter() const {
  double sum = 0;
  for (const double apart : apart_) {
    sum += std::min(apart, kWidest);
  }
  return kOfMeanDeviation * sum / static_cast<double>(apart_.size());
}

/// One more run, which makes a ratio with the run before it. False when there is none.
bool Tuner::take_turn(const knobs::Settings& changes, Turns& turns, std::stop_token stop) {
  const bool reference = turns.reference_next;
  LoggedTrial turn = measure(reference ? outcome_.best : changes, reference ? "reference" : "again", stop);
  if (turn.result.interrupted || !turn.result.ok) {
    return false;
  }
  TrialResult& before = reference ? turns.reference : turns.change;
  if (comparable(turn.result, before)) {
    apart_.push_back(std::abs(turn.result.rate / before.rate - 1));
  }
  before = turn.result;
  if (reference && outcome_.best.empty()) {
    add_repeat(turn.result);
  }
  if (!turns.neighbours) {
    turns.ratios.clear();
    turns.neighbours = true;
  }
  const double ratio = turns.change.rate / turns.reference.rate;
  const bool counts = comparable(turns.change, turns.reference);
  if (counts) {
    turns.ratios.push_back(ratio);
  }
  turns.reference_next = !reference;
  ++turns.taken;
  turn.verdict = "turn";
  turn.why = fmt::format("{}; {:.3f}x{}", reference ? "the best so far once more" : "the change once more", ratio,
                         counts ? "" : ", not counted: others used the CPUs during one of the two");
  log(std::move(turn));
  return true;
}

bool Tuner::may_repeat(std::stop_token stop) const {
  return !stop.stop_requested() && elapsed_s() + incumbent_.seconds + verification_s() <= options_.budget_s;
}

/// Fills in verdict and reason when the trial cannot be taken whatever its speed.
bool Tuner::rejected(LoggedTrial& trial, std::stop_token stop) {
  if (!trial.result.ok) {
    trial.verdict = "failed";
    trial.why += "; " + trial.result.problem;
    return true;
  }
  drop_what_did_not_take(trial);
  if (trial.changes == outcome_.best && trial.stage != "removal") {
    trial.verdict = "not taken";
    return true;
  }
  Parity parity = parity_of(repeats_, {trial.result}, trial.changes);
  while (!parity.held && learn_spread(trial.result, stop)) {
    parity = parity_of(repeats_, {trial.result}, trial.changes);
  }
  if (!parity.held) {
    trial.verdict = "parity broken";
    trial.why += "; " + parity.why;
  }
  return !parity.held;
}

/// Runs the program without changes once more, because a difference only counts beside how far it lies from itself.
/// False where that is known: after three runs, or two that agree; and where no time is left or no run could help.
bool Tuner::learn_spread(const TrialResult& changed, std::stop_token stop) {
  const bool hopeless = changed.loss && !std::isfinite(*changed.loss);
  const bool known = repeats_.size() >= kMostRepeats || (repeats_.size() > 1 && agree(repeats_));
  if (hopeless || known || !may_repeat(stop)) {
    return false;
  }
  LoggedTrial once_more = measure({}, "reference", stop);
  if (once_more.result.interrupted || !once_more.result.ok) {
    return false;
  }
  const std::size_t before = repeats_.size();
  add_repeat(once_more.result);
  once_more.verdict = "baseline";
  once_more.why = "without changes once more: how far its loss lies from itself";
  log(std::move(once_more));
  return repeats_.size() > before;
}

/// A run that lacks what the baseline reports could not stand beside it.
void Tuner::add_repeat(const TrialResult& run) {
  const bool complete =
      run.loss.has_value() == baseline_.loss.has_value() && run.metrics.size() == baseline_.metrics.size();
  if (complete) {
    repeats_.push_back(run);
  }
}

Tuner::Judgement Tuner::judge(LoggedTrial& trial, double ratio, double margin) {
  last_ratio_ = ratio;
  const bool better = ratio > 1 + margin * kWorth;
  const bool removal = trial.stage == "removal";
  trial.verdict = better ? (removal ? "reverted" : "kept") : (removal ? "needed" : "no gain");
  trial.why += fmt::format("; {:.3f}x of the best so far", ratio);
  return better ? Judgement::kBetter : Judgement::kNoGain;
}

bool Tuner::disturbed() const { return disturbed_trials_ * 3 > measured_trials_; }

void Tuner::drop_what_did_not_take(LoggedTrial& trial) {
  for (const auto& [knob, why] : trial.result.refused) {
    const auto found = trial.changes.find(knob);
    if (found == trial.changes.end()) {
      continue;
    }
    const std::string asked = knobs::pair_key(knob, found->second);
    trial.changes.erase(found);
    trial.why += fmt::format("; {} did not take: {}", knob, why);
    if (refused_.insert(asked).second) {
      outcome_.not_taken.push_back(fmt::format("{}: {}", asked, why));
    }
  }
  for (const auto& [knob, asked] : knobs::Settings(trial.changes)) {
    const auto found = trial.result.effective.find(knob);
    const knobs::Knob* known = knobs::find_knob(knob);
    if (found == trial.result.effective.end() || known == nullptr) {
      continue;  // the program does not say: not confirmed, but not contradicted either
    }
    const std::string in_force = knobs::canonical_value(*known, found->second).value_or(found->second);
    if (in_force == asked) {
      continue;
    }
    trial.changes.erase(knob);
    trial.why += fmt::format("; {} did not take: {} is in force, not {}", knob, in_force, asked);
    if (refused_.insert(knobs::pair_key(knob, asked)).second) {
      outcome_.not_taken.push_back(fmt::format("{}: asked for {}, in force is {}", knob, asked, in_force));
    }
  }
}

bool Tuner::may_go_on(std::stop_token stop, int reserve) const {
  const double next_s = std::max(incumbent_.seconds, 0.0);
  return !stop.stop_requested() && search_trials_ + reserve < options_.trials &&
         elapsed_s() + next_s + verification_s() <= options_.budget_s;
}

double Tuner::elapsed_s() const { return seconds(clock_.now_ns() - start_ns_); }

double Tuner::verification_s() const { return kLeastPairs * (baseline_.seconds + incumbent_.seconds); }

}  // namespace unidle::tune
