#include "unidle/tune/search/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "unidle/experiment/ratio.h"
#include "unidle/experiment/turns.h"

namespace unidle::tune {

namespace {

/// Further pairs when the first ones are inconclusive.
constexpr int kExtraPairs = 4;
/// Pairs that may fail, because a busy machine may be too slow once.
constexpr int kMostFailures = 2;
/// When every pair gains this many times the noise, no further pairs are needed.
constexpr double kClearGain = 3;

}  // namespace

std::optional<Verification> Verifier::verify(const knobs::Settings& winner) {
  Verification verification;
  for (int pairs = 0; pairs < options_.pairs + kExtraPairs && !is_over(verification, pairs); ++pairs) {
    if (!run_pair(winner, verification)) {
      break;
    }
    take_stock(verification);
  }
  if (log_.stopped()) {
    return std::nullopt;
  }
  take_stock(verification);
  return verification;
}

bool Verifier::is_over(const Verification& verification, int pairs) const {
  const bool all = pairs >= options_.pairs;
  const bool hopeless = all && verification.interval.high < 1 + options_.least_gain;
  return verification.shown || hopeless || (pairs >= kLeastPairs && !budget_.allows_s(budget_.pair_s()));
}

void Verifier::take_stock(Verification& verification) const {
  const std::size_t pairs = std::min(verification.baseline.size(), verification.winner.size());
  if (pairs == 0) {
    return;
  }
  std::vector<experiment::PairOfRates> rates;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < pairs; ++i) {
    rates.push_back({{verification.baseline[i], {}}, {verification.winner[i], {}}});
    least = std::min(least, verification.winner[i] / verification.baseline[i]);
  }
  const auto ratio = experiment::ratio_of(rates);
  if (!ratio) {
    return;
  }
  verification.ratio = ratio->value;
  verification.interval = ratio->interval.value_or(Interval{ratio->value, ratio->value});
  verification.clear = pairs >= kLeastPairs && least > 1 + kClearGain * log_.noise();
  verification.shown = verification.parity.held && verification.interval.low > 1 &&
                       verification.ratio >= 1 + options_.least_gain &&
                       (verification.clear || pairs >= static_cast<std::size_t>(options_.pairs));
}

/// False when it was interrupted, or when the winner failed or trains something else.
bool Verifier::run_pair(const knobs::Settings& changes, Verification& verification) {
  const bool winner_first = experiment::turns_of_pair(verification.winner.size()).front() == experiment::Side::kB;
  const auto run = [&](bool winner) {
    return log_.measure(winner ? changes : knobs::Settings{}, winner ? "verify-winner" : "verify-baseline");
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
  baseline.verdict = baseline.result.ok ? "baseline" : "failed";
  winner.verdict = winner.result.ok ? "winner" : "failed";
  baseline.why = baseline.result.problem;
  winner.why = winner.result.problem;
  const bool ran = baseline.result.ok && winner.result.ok;
  const bool goes_on =
      ran ? compare_pair(baseline.result, winner, verification) : fail_pair(baseline, winner, verification);
  log_.add(std::move(first));
  log_.add(std::move(second));
  return goes_on;
}

/// True when another pair may be tried.
bool Verifier::fail_pair(const LoggedTrial& baseline, const LoggedTrial& winner, Verification& verification) const {
  if (++verification.failures < kMostFailures) {
    return true;
  }
  const bool by_winner = !winner.result.ok;
  verification.parity.held = false;
  verification.parity.why = by_winner ? fmt::format("the winner failed: {}", winner.why)
                                      : fmt::format("the program as it is failed: {}", baseline.why);
  return false;
}

/// Adds the pair. False when the winner trains something else.
bool Verifier::compare_pair(const TrialResult& baseline, LoggedTrial& winner, Verification& verification) {
  repeats_.add(baseline);
  verification.baseline.push_back(baseline.rate);
  verification.winner.push_back(winner.result.rate);
  verification.baselines.push_back(baseline);
  verification.winners.push_back(winner.result);
  experiment::Parity parity = repeats_.parity_of({baseline}, {winner.result}, winner.changes);
  if (parity.held && verification.winners.size() > 1) {
    // All pairs together show what noise hides in each.
    parity = repeats_.parity_of(verification.baselines, verification.winners, winner.changes);
  }
  verification.compared = verification.compared || parity.compared();
  if (!parity.held) {
    verification.parity = parity;
    winner.verdict = "parity broken";
  }
  winner.why = parity.why;
  return parity.held;
}

}  // namespace unidle::tune
