// The last part of the search: the winner against the baseline, in turns.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/tune/tuner.h"

namespace unidle::tune {

namespace {

/// Further pairs when the first ones leave it open.
constexpr int kExtraPairs = 2;

Settings exact_part(const Settings& settings) {
  Settings exact;
  for (const auto& [knob, value] : settings) {
    if (is_exact({{knob, value}})) {
      exact[knob] = value;
    }
  }
  return exact;
}

void take_stock(Verification& verification, double least_gain) {
  if (verification.baseline.empty() || verification.winner.empty()) {
    return;
  }
  verification.ratio = mean(verification.winner) / mean(verification.baseline);
  verification.interval = bootstrap_ratio(verification.baseline, verification.winner);
  verification.shown =
      verification.parity.held && verification.interval.low > 1 && verification.ratio >= 1 + least_gain;
}

}  // namespace

/// False when it was interrupted or the winner failed.
bool Tuner::verify_pair(Verification& verification, std::stop_token stop) {
  LoggedTrial baseline = measure({}, "verify-baseline", stop);
  if (baseline.result.interrupted || !baseline.result.ok) {
    return false;
  }
  baseline.verdict = "baseline";
  log(baseline);
  LoggedTrial winner = measure(outcome_.best, "verify-winner", stop);
  if (winner.result.interrupted) {
    return false;
  }
  if (!winner.result.ok) {
    winner.verdict = "failed";
    winner.why = winner.result.problem;
    verification.parity = {false, "the winner failed: " + winner.result.problem};
    log(winner);
    return false;
  }
  verification.baseline.push_back(baseline.result.rate);
  verification.winner.push_back(winner.result.rate);
  const Parity parity = check_parity(baseline.result, winner.result, outcome_.best, options_.bands);
  if (!parity.held) {
    verification.parity = parity;
  }
  const bool common_metric =
      std::any_of(baseline.result.metrics.begin(), baseline.result.metrics.end(),
                  [&](const auto& metric) { return winner.result.metrics.contains(metric.first); });
  verification.compared = (baseline.result.loss && winner.result.loss) || common_metric;
  winner.verdict = parity.held ? "winner" : "parity broken";
  winner.why = parity.why;
  log(winner);
  return parity.held;
}

std::optional<Verification> Tuner::verify(std::stop_token stop) {
  Verification verification;
  for (int pair = 0; pair < options_.pairs + kExtraPairs; ++pair) {
    const double pair_s = baseline_.seconds + incumbent_.seconds;
    if (pair >= options_.pairs && (verification.shown || elapsed_s() + pair_s > options_.budget_s)) {
      break;
    }
    if (!verify_pair(verification, stop)) {
      break;
    }
    take_stock(verification, options_.least_gain);
  }
  if (stop.stop_requested()) {
    return std::nullopt;
  }
  take_stock(verification, options_.least_gain);
  return verification;
}

void Tuner::verify_best(std::stop_token stop) {
  outcome_.verification = verify(stop);
  const Settings exact = exact_part(outcome_.best);
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
                              : "stopped; the best so far (" + describe(outcome_.best) +
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
    if (!found.compared) {
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

std::vector<Change> Tuner::changes_of(const Settings& best) const {
  std::vector<Change> changes;
  for (const auto& [knob, value] : best) {
    const std::string from = value_of(settings_, knob);
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
