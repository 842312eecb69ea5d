// One trial of the search: measuring, repeating, judging.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/knobs/knob.h"
#include "unidle/tune/tuner.h"

namespace unidle::tune {

namespace {

/// Less than this share of the speed of the best so far is rather the machine's doing than a knob's.
constexpr double kSuspicious = 0.85;
/// Repeated measurements on top of the trials of a search.
constexpr int kMostRepeats = 4;
/// CPUs in use by others from which on a trial counts as disturbed.
constexpr double kDisturbingCpus = 0.25;

}  // namespace

LoggedTrial Tuner::measure(const Settings& changes, const std::string& stage, std::stop_token stop) {
  LoggedTrial trial;
  trial.index = static_cast<int>(outcome_.trials.size()) + 1;
  trial.stage = stage;
  trial.changes = changes;
  trial.result = runner_.run(changes, stop);
  trial.result.interrupted = trial.result.interrupted || stop.stop_requested();
  ++measured_trials_;
  disturbed_trials_ += trial.result.others_cpus.value_or(0) > kDisturbingCpus;
  search_trials_ += stage.starts_with("verify") || stage == "again" ? 0 : 1;
  return trial;
}

void Tuner::log(LoggedTrial trial) {
  outcome_.trials.push_back(std::move(trial));
  if (on_trial_) {
    on_trial_(outcome_.trials.back());
  }
}

/// Takes the settings when they are faster than the best so far by more than `margin` times the noise.
Tuner::Judgement Tuner::try_settings(const Settings& changes, const std::string& stage, const std::string& what,
                                     double margin, std::stop_token stop) {
  LoggedTrial trial = measure(changes, stage, stop);
  trial.why = what;
  if (trial.result.interrupted) {
    return Judgement::kStopped;
  }
  double reference = incumbent_.rate;
  bool out = rejected(trial);
  if (!out && trial.result.rate < kSuspicious * reference && may_repeat(stop)) {
    if (!measure_again(trial, reference, stop)) {
      return Judgement::kStopped;
    }
    out = rejected(trial);
  }
  const Judgement judgement = out ? Judgement::kRejected : judge(trial, reference, margin);
  if (judgement == Judgement::kBetter) {
    const double at_full_speed = trial.result.rate * incumbent_.rate / reference;
    incumbent_ = trial.result;
    incumbent_.rate = at_full_speed;
    outcome_.best = trial.changes;
  }
  log(std::move(trial));
  return judgement;
}

/// A much slower trial may be the machine's doing: the best so far is measured once more. When that has become slower
/// too, the trial is repeated at once and judged against it; `reference` is what to judge against. False when stopped.
bool Tuner::measure_again(LoggedTrial& trial, double& reference, std::stop_token stop) {
  LoggedTrial again = measure(outcome_.best, "again", stop);
  if (again.result.interrupted || !again.result.ok) {
    return !again.result.interrupted;
  }
  const double rate = again.result.rate;
  const double drift = rate / incumbent_.rate;
  again.why = fmt::format("the best so far once more; {:.3f}x of what it was", drift);
  again.verdict = "reference";
  steady_ = std::abs(drift - 1) <= options_.noise && !disturbed();
  log(std::move(again));
  if (drift >= 1 - noise()) {
    incumbent_.rate = reference = drift > 1 + noise() ? rate : (incumbent_.rate + rate) / 2;
    trial.index = static_cast<int>(outcome_.trials.size()) + 1;
    return true;
  }
  reference = rate;
  const std::string what = trial.why;
  trial = measure(trial.changes, trial.stage, stop);
  trial.why = what;
  --search_trials_;  // the same trial, once more
  return !trial.result.interrupted;
}

/// On a machine that has shown itself steady, repeating is a waste.
bool Tuner::may_repeat(std::stop_token stop) const {
  const auto repeats = std::count_if(outcome_.trials.begin(), outcome_.trials.end(),
                                     [](const LoggedTrial& trial) { return trial.stage == "again"; });
  return !steady_ && repeats < kMostRepeats && !stop.stop_requested() &&
         elapsed_s() + 2 * incumbent_.seconds + verification_s() <= options_.budget_s;
}

/// Fills in verdict and reason when the trial cannot be taken whatever its speed.
bool Tuner::rejected(LoggedTrial& trial) {
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
  const Parity parity = check_parity(baseline_, trial.result, trial.changes, options_.bands);
  if (!parity.held) {
    trial.verdict = "parity broken";
    trial.why += "; " + parity.why;
  }
  return !parity.held;
}

Tuner::Judgement Tuner::judge(LoggedTrial& trial, double reference, double margin) {
  const double ratio = last_ratio_ = trial.result.rate / reference;
  const bool better = ratio > 1 + margin * noise();
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
    const std::string asked = pair_key(knob, found->second);
    trial.changes.erase(found);
    trial.why += fmt::format("; {} did not take: {}", knob, why);
    if (refused_.insert(asked).second) {
      outcome_.not_taken.push_back(fmt::format("{}: {}", asked, why));
    }
  }
  for (const auto& [knob, asked] : Settings(trial.changes)) {
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
    if (refused_.insert(pair_key(knob, asked)).second) {
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

double Tuner::verification_s() const { return options_.pairs * (baseline_.seconds + incumbent_.seconds); }

}  // namespace unidle::tune
