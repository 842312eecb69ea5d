#include "unidle/tune/search/contest.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace unidle::tune {

namespace {

/// A trial counts as better from `margin` times this gain on; verification decides whether the gain is worth a change.
constexpr double kWorth = 0.01;
/// The number of a run that does not exist.
constexpr int kNoRun = -1;

}  // namespace

void Contest::begin(const TrialResult& baseline) { take({{}, baseline, log_.runs()}); }

void Contest::take(Best best) {
  best_ = std::move(best);
  reserve();
}

/// Keeps time for the fresh pairs that would verify the next trial if it is better. Only a trial against the unchanged
/// program itself has a pair before its verification.
void Contest::reserve() {
  const int fresh_pairs = !best_.settings.empty() ? kLeastPairs
                          : log_.searched() > 1   ? kLeastFreshPairs
                                                  : kFreshPairsOfFirstTrial;
  budget_.expect(repeats_.baseline().seconds, best_.result.seconds, fresh_pairs);
}

void Contest::restore(Best best) { take(std::move(best)); }

Contest::Verdict Contest::challenge(const knobs::Settings& changes, const std::string& stage, const std::string& what,
                                    double margin, bool confirm) {
  const bool neighbours = best_.run == log_.runs();
  const std::size_t logged = log_.trials().size();
  LoggedTrial trial = log_.measure(changes, stage, limit_s());
  trial.why = what;
  if (trial.result.interrupted) {
    return {};
  }
  if (is_rejected(trial)) {
    log_.add(std::move(trial));
    return {Judgement::kRejected};
  }
  reserve();
  const bool others_between = log_.trials().size() > logged;
  experiment::Alternation turns(trial.result.measurement(), best_.result.measurement(), neighbours, confirm);
  const double limit = 1 + margin * kWorth;
  while (turns.is_open(limit, scatter_, log_.last_was_disturbed()) && may_repeat() && take_turn(trial.changes, turns)) {
  }
  if (log_.stopped()) {
    return {};
  }
  const Verdict verdict = judge(trial, turns, limit);
  const bool newest_is_best = (verdict.judgement == Judgement::kBetter) == turns.reference_is_next();
  if (verdict.judgement == Judgement::kBetter) {
    auto pairs = best_.settings.empty() ? turns.pairs() : std::vector<experiment::PairOfRates>{};
    take({trial.changes, trial.result, kNoRun, std::move(pairs)});
  }
  best_.run = newest_is_best && (turns.taken() > 0 || !others_between) ? log_.runs() : kNoRun;
  log_.add(std::move(trial));
  return verdict;
}

/// Sets the newest rates of the trial and of the best so far, and the trial's verdict.
Contest::Verdict Contest::judge(LoggedTrial& trial, const experiment::Alternation& turns, double limit) {
  trial.result.remeasure(turns.change());
  best_.result.remeasure(turns.reference());
  trial.why += turns.counted() > 1 ? "; " + fmt::format("median of {} turns", turns.counted()) : "";
  trial.why += "; " + fmt::format("{:.3f}x of the best so far", turns.ratio());
  const bool removal = trial.stage == "removal";
  if (turns.ratio() > limit) {
    trial.verdict = removal ? "reverted" : "kept";
    return {Judgement::kBetter, turns.ratio()};
  }
  trial.verdict = removal ? "needed" : "no gain";
  return {Judgement::kNoGain, turns.ratio()};
}

/// Runs once more and compares with the run before. False when the run failed.
bool Contest::take_turn(const knobs::Settings& changes, experiment::Alternation& turns) {
  const bool reference = turns.reference_is_next();
  LoggedTrial run = log_.measure(reference ? best_.settings : changes, reference ? "reference" : "again", limit_s());
  if (run.result.interrupted || !run.result.ok) {
    return false;
  }
  if (reference && best_.settings.empty()) {
    repeats_.add(run.result);
  }
  const auto [ratio, counts] = turns.take(run.result.measurement(), scatter_);
  run.verdict = "turn";
  run.why = reference ? "the best so far once more" : "the change once more";
  run.why += "; " + (counts ? fmt::format("{:.3f}x", ratio)
                            : fmt::format("{:.3f}x, not counted: others used the CPUs during one of the two", ratio));
  log_.add(std::move(run));
  return true;
}

/// Sets verdict and reason when the trial must be rejected whatever its speed.
bool Contest::is_rejected(LoggedTrial& trial) {
  if (!trial.result.ok) {
    trial.verdict = "failed";
    trial.why += "; " + trial.result.problem;
    return true;
  }
  refusals_.take_out(trial);
  // Changes that belong to a batch size, such as a learning rate, are meaningless with another size.
  const bool lost_its_size = trial.stage == "batch" && !trial.changes.contains("batch.size");
  if (lost_its_size || (trial.changes == best_.settings && trial.stage != "removal")) {
    trial.verdict = "not taken";
    return true;
  }
  experiment::Parity parity = repeats_.parity_of(trial.result, trial.changes);
  while (!parity.held && learn_spread(trial.result)) {
    parity = repeats_.parity_of(trial.result, trial.changes);
  }
  if (!parity.held) {
    trial.verdict = "parity broken";
    trial.why += "; " + parity.why;
  }
  return !parity.held;
}

/// Runs the unchanged program once more, because a difference only means something relative to the program's own
/// spread. False when the spread is known, no time is left, or no run could help.
bool Contest::learn_spread(const TrialResult& changed) {
  const bool hopeless = changed.loss && !std::isfinite(*changed.loss);
  if (hopeless || repeats_.are_enough() || !may_repeat()) {
    return false;
  }
  LoggedTrial once_more = log_.measure({}, "reference", limit_s());
  if (once_more.result.interrupted || !once_more.result.ok) {
    return false;
  }
  const bool told = repeats_.add(once_more.result);
  once_more.verdict = "baseline";
  once_more.why = "without changes once more: how far its loss lies from itself";
  log_.add(std::move(once_more));
  return told;
}

}  // namespace unidle::tune
