#include "unidle/tune/search/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace unidle::tune {

namespace {

std::string stopped(const TunerOutcome& outcome, const Circumstances& circumstances) {
  if (outcome.best.empty()) {
    return circumstances.of_program ? "stopped before anything better was found; nothing was advised"
                                    : "stopped before anything better was found; nothing was written";
  }
  const std::string best = knobs::describe(outcome.best);
  return circumstances.of_program
             ? fmt::format("stopped; the best so far ({}) is not verified, so nothing was advised", best)
             : fmt::format("stopped; the best so far ({}) is not verified, so nothing was written", best);
}

/// When the interval reaches a gain of this size, it may be there.
constexpr double kWorthAsking = 0.05;
/// Trials of a search that tries what is promising.
constexpr int kUsefulTrials = 4;

/// Rounds up to tens of seconds with a margin, because trials vary in length.
double rounded_up(double needed_s) { return std::ceil(needed_s * 1.1 / 10) * 10; }

std::string nothing_tried(const FirstTrial& first) {
  if (first.needed_s > first.budget_s) {
    return fmt::format(
        "nothing was tried: the first trial took {:.0f} s, {:.0f} s more are kept back to verify what is found, and "
        "the budget is {:.0f} s; --budget {:.0f}s leaves time for one trial more, a longer one for more of them",
        first.seconds, first.kept_back_s, first.budget_s, rounded_up(first.needed_s));
  }
  return first.trials < 2 ? "nothing was tried: --trials 1 is the first trial alone"
                          : "nothing was tried: nothing that can be changed was left to try";
}

/// Why the search cannot say that there is nothing to gain; empty when it can.
std::string why_open(const TunerOutcome& outcome, const Circumstances& circumstances) {
  if (circumstances.disturbed) {
    return "measure again on a quiet machine";
  }
  if (outcome.verification && outcome.verification->interval.high >= 1 + kWorthAsking) {
    return outcome.verification->winner.size() < kPairsOfAnInterval
               ? "too few pairs, or too different, to prove a gain; give more time with --budget"
               : "the runs differ too much, or were too few, to say more; give more time with --budget";
  }
  if (circumstances.untried > 0 && circumstances.first.trials > circumstances.searched + kRemovalReserve) {
    return fmt::format("the budget ended before {} more changes were tried; give more with --budget",
                       circumstances.untried);
  }
  if (circumstances.untried > 0) {
    return fmt::format("budget or trials ended before {} more changes were tried; give more with --budget or --trials",
                       circumstances.untried);
  }
  return "";
}

/// The verdict before the facts, and what to do after them.
std::string judged(const std::string& facts, const TunerOutcome& outcome, const Circumstances& circumstances) {
  const std::string open = why_open(outcome, circumstances);
  return open.empty() ? fmt::format("nothing to gain: {}", facts)
                      : fmt::format("the search is inconclusive: {}", facts) + "; " + open;
}

std::string nothing_verified(const TunerOutcome& outcome, const Circumstances& circumstances) {
  if (outcome.all_failed) {
    return fmt::format("nothing is known: every change that was tried failed, the last with: {}",
                       outcome.trials.back().why);
  }
  if (!circumstances.had_candidates) {
    return "nothing to gain: no setting that could matter can be changed";
  }
  if (circumstances.searched < 2) {
    return nothing_tried(circumstances.first);
  }
  if (circumstances.found_better) {
    return fmt::format(
        "the search is inconclusive: {} was faster when it was tried, and the budget ended before it was verified",
        knobs::describe(outcome.best));
  }
  if (const auto broken = std::ranges::find(outcome.trials, "parity broken", &LoggedTrial::verdict);
      broken != outcome.trials.end()) {
    return judged(fmt::format("with {} the losses differ, so it was rejected, and no other change was faster",
                              knobs::describe(broken->changes)),
                  outcome, circumstances);
  }
  return judged(circumstances.of_program ? "no change was faster than the program as it is"
                                         : "no change was faster than the configuration as it is",
                outcome, circumstances);
}

std::string shown(const Verification& found, const Circumstances& circumstances) {
  const std::vector<double> pairs = found.ratios();
  std::string text =
      pairs.size() == 2
          ? fmt::format("{:.2f}x as fast as before (2 pairs: {:.2f}x and {:.2f}x)", found.ratio, pairs[0], pairs[1])
          : fmt::format("{:.2f}x as fast as before (95 % interval {:.2f} to {:.2f}, {} pairs)", found.ratio,
                        found.interval.low, found.interval.high, pairs.size());
  if (circumstances.other_effective_batch) {
    text += "; ";
    text += "the effective batch size differs, which changes the training, so compare the losses of whole runs";
  } else if (!found.compared) {
    text += "; ";
    text += "there was no loss or metric to compare, so check the results yourself";
  }
  if (circumstances.untried > 0) {
    text += "; " + fmt::format("the budget ended before {} more changes were tried", circumstances.untried);
  }
  return text;
}

std::string not_shown(const TunerOutcome& outcome, const Circumstances& circumstances) {
  const Verification& found = *outcome.verification;
  if (!found.parity.held) {
    return fmt::format("the fastest change cannot be used: {}", found.parity.why);
  }
  const std::vector<double> pairs = found.ratios();
  if (pairs.size() < 2) {
    return fmt::format("the search is inconclusive: {:.2f}x as fast as the baseline in one pair, then the budget ended",
                       found.ratio);
  }
  const auto [low, high] = found.interval;
  const std::string facts =
      pairs.size() < kPairsOfAnInterval ? fmt::format("2 pairs gave {:.2f}x and {:.2f}x", pairs[0], pairs[1])
      : circumstances.found_better
          ? fmt::format("the best is {:.2f}x as fast as the baseline (95 % interval {:.2f} to {:.2f})", found.ratio,
                        low, high)
          : fmt::format("the fastest change tried is {:.2f}x as fast as the baseline (95 % interval {:.2f} to {:.2f})",
                        found.ratio, low, high);
  return judged(facts, outcome, circumstances);
}

}  // namespace

std::string what_it_buys(const Budget& budget) {
  const int runs = budget.runs_left();
  if (runs > 0 || budget.trials() < 2) {
    return fmt::format("the budget of {:.0f} s buys up to {} trials of about {:.0f} s; {:.0f} s are kept to verify",
                       budget.total_s(), runs, budget.baseline_s(), budget.kept_back_s());
  }
  return fmt::format(
      "the budget of {:.0f} s buys no trial: one takes about {:.0f} s, and {:.0f} s are kept to verify; --budget "
      "{:.0f}s buys {}",
      budget.total_s(), budget.baseline_s(), budget.kept_back_s(), rounded_up(budget.needed_s(kUsefulTrials)),
      kUsefulTrials);
}

std::string conclusion_of(const TunerOutcome& outcome, const Circumstances& circumstances) {
  std::string text = outcome.interrupted           ? stopped(outcome, circumstances)
                     : !outcome.verification       ? nothing_verified(outcome, circumstances)
                     : outcome.verification->shown ? shown(*outcome.verification, circumstances)
                                                   : not_shown(outcome, circumstances);
  if (circumstances.disturbed) {
    text += "; " + fmt::format("other processes used the CPUs during {} of {} trials, so the figures are rough",
                               circumstances.disturbed_runs, circumstances.measured);
  }
  return text;
}

}  // namespace unidle::tune
