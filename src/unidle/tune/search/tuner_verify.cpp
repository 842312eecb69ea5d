// The last part of the search: the winner against the baseline, in turns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/units.h"
#include "unidle/tune/search/tuner.h"

namespace unidle::tune {

namespace {

/// Further pairs when the first ones leave it open.
constexpr int kExtraPairs = 4;
/// Pairs that may fail: a machine that is busy with something else may be too slow for once.
constexpr int kMostFailures = 2;
/// A gain in every pair of so many times the noise needs no further pairs.
constexpr double kClearGain = 3;

knobs::Settings exact_part(const knobs::Settings& settings) {
  knobs::Settings exact;
  for (const auto& [knob, value] : settings) {
    if (knobs::is_exact({{knob, value}})) {
      exact[knob] = value;
    }
  }
  return exact;
}

}  // namespace

void Tuner::take_stock(Verification& verification) const {
  const std::size_t pairs = std::min(verification.baseline.size(), verification.winner.size());
  if (pairs == 0) {
    return;
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs; ++i) {
    ratios.push_back(verification.winner[i] / verification.baseline[i]);
  }
  verification.ratio = median(ratios);
  verification.interval = bootstrap_median(ratios);
  verification.clear =
      pairs >= kLeastPairs && *std::min_element(ratios.begin(), ratios.end()) > 1 + kClearGain * noise();
  verification.shown = verification.parity.held && verification.interval.low > 1 &&
                       verification.ratio >= 1 + options_.least_gain &&
                       (verification.clear || pairs >= static_cast<std::size_t>(options_.pairs));
}

/// False when it was interrupted, or the winner failed or trains something else. Every other pair is turned round, so
/// that a machine that gets slower steadily favours neither.
bool Tuner::verify_pair(Verification& verification, std::stop_token stop) {
  const bool winner_first = verification.winner.size() % 2 == 1;
  const auto run = [&](bool winner) {
    return measure(winner ? outcome_.best : knobs::Settings{}, winner ? "verify-winner" : "verify-baseline", stop);
  };
  LoggedTrial first = run(winner_first);
  if (first.result.interrupted) {
    return false;
  }
  LoggedTrial second = run(!winner_first);
  if (second.result.interrupted) {
    return false;
  }
  LoggedTrial& baseline = winner_first ? second : first;
  LoggedTrial& winner = winner_first ? first : second;
  second.index = first.index + 1;
  baseline.verdict = baseline.result.ok ? "baseline" : "failed";
  winner.verdict = winner.result.ok ? "winner" : "failed";
  baseline.why = baseline.result.problem;
  winner.why = winner.result.problem;
  bool good = true;
  if (baseline.result.ok && winner.result.ok) {
    good = compare_pair(verification, baseline.result, winner);
  } else if (++verification.failures >= kMostFailures) {
    const bool by_winner = !winner.result.ok;
    verification.parity = {false, fmt::format("the {} failed: {}", by_winner ? "winner" : "program as it is",
                                              by_winner ? winner.why : baseline.why)};
    good = false;
  }
  log(std::move(first));
  log(std::move(second));
  return good;
}

/// Adds the pair; false when the winner trains something else.
bool Tuner::compare_pair(Verification& verification, const TrialResult& baseline, LoggedTrial& winner) {
  add_repeat(baseline);
  verification.baseline.push_back(baseline.rate);
  verification.winner.push_back(winner.result.rate);
  verification.baselines.push_back(baseline);
  verification.winners.push_back(winner.result);
  Parity parity = parity_of({baseline}, {winner.result}, outcome_.best);
  if (parity.held && verification.winners.size() > 1) {
    // Together they show what chance hides in each of them.
    parity = parity_of(verification.baselines, verification.winners, outcome_.best);
  }
  const bool common_metric = std::any_of(baseline.metrics.begin(), baseline.metrics.end(), [&](const auto& metric) {
    return winner.result.metrics.contains(metric.first);
  });
  verification.compared = verification.compared || (baseline.loss && winner.result.loss) || common_metric;
  if (!parity.held) {
    verification.parity = parity;
    winner.verdict = "parity broken";
  }
  winner.why = parity.why;
  return parity.held;
}

std::optional<Verification> Tuner::verify(std::stop_token stop) {
  Verification verification;
  for (int pair = 0; pair < options_.pairs + kExtraPairs; ++pair) {
    const double pair_s = baseline_.seconds + incumbent_.seconds;
    const bool enough = verification.clear || (pair >= options_.pairs && verification.shown);
    const bool hopeless = pair >= options_.pairs && verification.interval.high < 1 + options_.least_gain;
    if (enough || hopeless || (pair >= kLeastPairs && elapsed_s() + pair_s > options_.budget_s)) {
      break;
    }
    if (!verify_pair(verification, stop)) {
      break;
    }
    take_stock(verification);
  }
  if (stop.stop_requested()) {
    return std::nullopt;
  }
  take_stock(verification);
  return verification;
}

void Tuner::verify_best(std::stop_token stop) {
  outcome_.verification = verify(stop);
  const knobs::Settings exact = exact_part(outcome_.best);
  const bool parity_broke = outcome_.verification && !outcome_.verification->parity.held;
  if (parity_broke && !exact.empty() && exact != outcome_.best) {
    // What changes rounding is the offender; the rest may still be a gain.
    outcome_.best = exact;
    outcome_.verification = verify(stop);
  }
}

/// No trial was better: the fastest one becomes the best, to be verified. False when there is none.
bool Tuner::take_fastest() {
  const LoggedTrial* fastest = nullptr;
  for (const LoggedTrial& trial : outcome_.trials) {
    if (trial.verdict == "no gain" && !changes_of(trial.changes).empty() &&
        (fastest == nullptr || trial.result.rate > fastest->result.rate)) {
      fastest = &trial;
    }
  }
  if (fastest != nullptr) {
    outcome_.best = fastest->changes;
  }
  return fastest != nullptr;
}

void Tuner::conclude(std::stop_token stop) {
  const bool found_some = !changes_of(outcome_.best).empty();
  const bool time_left = elapsed_s() + 2 * baseline_.seconds <= options_.budget_s;
  if (!stop.stop_requested() && (found_some || (options_.verify_fastest && time_left && take_fastest()))) {
    verify_best(stop);
  }
  if (!found_some && !(outcome_.verification && outcome_.verification->shown)) {
    outcome_.best.clear();
  }
  outcome_.interrupted = stop.stop_requested();
  if (outcome_.interrupted) {
    outcome_.conclusion = outcome_.best.empty()
                              ? "stopped before anything better was found; nothing was " + options_.done
                              : "stopped; the best so far (" + knobs::describe(outcome_.best) +
                                    ") is not verified, so nothing was " + options_.done;
  } else if (!outcome_.verification) {
    outcome_.conclusion = candidates_.empty() ? "nothing to gain: nothing that could matter to it can be changed"
                          : search_trials_ < 2
                              ? "nothing was tried: the budget ended with the first trial; give more with --budget"
                              : "nothing to gain: no change was faster than the " + options_.subject + " as it is";
  } else if (const Verification& found = *outcome_.verification; found.shown) {
    outcome_.changes = changes_of(outcome_.best);
    outcome_.conclusion = fmt::format("{:.2f}x as fast as before (95 % interval {:.2f} to {:.2f}, {} pairs)",
                                      found.ratio, found.interval.low, found.interval.high, found.winner.size());
    if (changes_effective_batch(outcome_.best)) {
      outcome_.conclusion +=
          "; another effective batch learns differently from sample to sample, so compare the losses of whole runs";
    } else if (!found.compared) {
      outcome_.conclusion += "; neither loss nor metric was there to compare, so look at them yourself";
    }
  } else {
    outcome_.conclusion =
        found.parity.held
            ? fmt::format("nothing to gain: the {} is {:.2f}x of the baseline (95 % interval {:.2f} to {:.2f})",
                          found_some ? "best" : "fastest change tried", found.ratio, found.interval.low,
                          found.interval.high)
            : "nothing to gain: " + found.parity.why;
  }
  if (disturbed()) {
    outcome_.conclusion +=
        fmt::format("; other processes used the CPUs during {} of {} trials, so the figures are rough",
                    disturbed_trials_, measured_trials_);
  }
}

std::vector<Change> Tuner::changes_of(const knobs::Settings& best) const {
  std::vector<Change> changes;
  for (const auto& [knob, value] : best) {
    const std::string from = knobs::value_of(settings_, knob);
    if (from == value) {
      continue;
    }
    Change change{knob, from, value, "faster together with the other changes", std::nullopt};
    double promise = -1;
    for (const Candidate& candidate : candidates_) {
      const auto found = candidate.changes.find(knob);
      if (found != candidate.changes.end() && found->second == value && candidate.promise > promise) {
        promise = candidate.promise;
        change.reason = candidate.reason;
      }
    }
    if (const auto gain = gains_.find(knob); gain != gains_.end()) {
      change.gain = gain->second;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace unidle::tune
