#include "unidle/tune/search/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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

std::vector<double> Verification::ratios() const {
  std::vector<double> all(std::min(baseline.size(), winner.size()));
  std::ranges::transform(winner, baseline, all.begin(), std::divides<>());
  return all;
}

std::optional<Verification> Verifier::verify(const knobs::Settings& winner,
                                             const std::vector<experiment::PairOfRates>& of_search) {
  Verification verification;
  for (const auto& [unchanged, changed] : of_search) {
    verification.baseline.push_back(unchanged.value);
    verification.winner.push_back(changed.value);
  }
  verification.of_search = of_search.size();
  while (!is_over(verification) && run_pair(winner, verification)) {
    take_stock(verification);
  }
  if (log_.stopped() || (verification.fresh() == 0 && verification.parity.held)) {
    return std::nullopt;
  }
  if (!verification.clear) {  // the pairs of the search do not count
    const auto from_search = static_cast<std::ptrdiff_t>(std::exchange(verification.of_search, 0));
    verification.baseline.erase(verification.baseline.begin(), verification.baseline.begin() + from_search);
    verification.winner.erase(verification.winner.begin(), verification.winner.begin() + from_search);
  }
  take_stock(verification);
  return verification;
}

bool Verifier::is_over(const Verification& verification) const {
  const int fresh = static_cast<int>(verification.fresh());
  const bool all = fresh >= options_.pairs;
  const bool hopeless = all && verification.interval.high < 1 + options_.least_gain;
  return verification.shown || hopeless || fresh >= options_.pairs + kExtraPairs || !budget_.allows_s(budget_.pair_s());
}

void Verifier::take_stock(Verification& verification) const {
  if (verification.fresh() == 0) {
    return;
  }
  std::vector<experiment::PairOfRates> rates;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < verification.winner.size(); ++i) {
    rates.push_back({{verification.baseline[i], {}}, {verification.winner[i], {}}});
    least = std::min(least, verification.winner[i] / verification.baseline[i]);
  }
  const bool many = rates.size() >= kLeastPairs && verification.fresh() >= kLeastFreshPairs;
  const bool last = rates.size() > 1 && !budget_.allows_s(budget_.pair_s());  // the interval of two is wide enough
  verification.clear = (many || last) && least > 1 + kClearGain * log_.noise();
  if (!verification.clear) {
    rates.erase(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(verification.of_search));
  }
  const auto ratio = experiment::ratio_of(rates);
  if (!ratio) {
    return;
  }
  verification.ratio = ratio->value;
  verification.interval = ratio->interval.value_or(Interval{ratio->value, ratio->value});
  verification.shown = verification.parity.held && verification.interval.low > 1 &&
                       verification.ratio >= 1 + options_.least_gain &&
                       (verification.clear || verification.fresh() >= static_cast<std::size_t>(options_.pairs));
}

/// False when it was interrupted, when the budget ended, or when the winner failed or trains something else.
bool Verifier::run_pair(const knobs::Settings& changes, Verification& verification) {
  const bool winner_first = experiment::turns_of_pair(verification.winner.size()).front() == experiment::Side::kB;
  const auto run = [&](bool winner) {
    return log_.measure(winner ? changes : knobs::Settings{}, winner ? "verify-winner" : "verify-baseline",
                        budget_.limit_s());
  };
  const auto is_cut_off = [&](const LoggedTrial& trial) {
    return trial.result.interrupted || (!trial.result.ok && !budget_.allows_s(0));
  };
  LoggedTrial first = run(winner_first);
  if (is_cut_off(first)) {
    return false;
  }
  LoggedTrial second = run(!winner_first);
  if (is_cut_off(second)) {
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
