#include "unidle/tune/search/outcome.h"

#include <fmt/format.h>

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

std::string nothing_verified(const TunerOutcome& outcome, const Circumstances& circumstances) {
  if (outcome.all_failed) {
    return fmt::format("nothing is known: every change that was tried failed, the last with: {}",
                       outcome.trials.back().why);
  }
  if (!circumstances.had_candidates) {
    return "nothing to gain: nothing that could matter to it can be changed";
  }
  if (circumstances.searched < 2) {
    return nothing_tried(circumstances.first);
  }
  return circumstances.of_program ? "nothing to gain: no change was faster than the program as it is"
                                  : "nothing to gain: no change was faster than the configuration as it is";
}

std::string shown(const Verification& found, const Circumstances& circumstances) {
  const std::string gain = fmt::format("{:.2f}x as fast as before (95 % interval {:.2f} to {:.2f}, {} pairs)",
                                       found.ratio, found.interval.low, found.interval.high, found.winner.size());
  if (circumstances.other_effective_batch) {
    return gain + "; " +
           "another effective batch learns differently from sample to sample, so compare the losses of whole runs";
  }
  return found.compared ? gain : gain + "; " + "neither loss nor metric was there to compare, so look at them yourself";
}

std::string not_shown(const Verification& found, const Circumstances& circumstances) {
  if (!found.parity.held) {
    return fmt::format("nothing to gain: {}", found.parity.why);
  }
  const auto [low, high] = found.interval;
  return circumstances.found_better
             ? fmt::format("nothing to gain: the best is {:.2f}x of the baseline (95 % interval {:.2f} to {:.2f})",
                           found.ratio, low, high)
             : fmt::format(
                   "nothing to gain: the fastest change tried is {:.2f}x of the baseline (95 % interval {:.2f} "
                   "to {:.2f})",
                   found.ratio, low, high);
}

}  // namespace

std::string conclusion_of(const TunerOutcome& outcome, const Circumstances& circumstances) {
  std::string text = outcome.interrupted           ? stopped(outcome, circumstances)
                     : !outcome.verification       ? nothing_verified(outcome, circumstances)
                     : outcome.verification->shown ? shown(*outcome.verification, circumstances)
                                                   : not_shown(*outcome.verification, circumstances);
  if (circumstances.disturbed) {
    text += "; " + fmt::format("other processes used the CPUs during {} of {} trials, so the figures are rough",
                               circumstances.disturbed_runs, circumstances.measured);
  }
  return text;
}

}  // namespace unidle::tune
