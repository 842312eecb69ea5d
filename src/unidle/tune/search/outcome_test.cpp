#include "unidle/tune/search/outcome.h"

#include <gmock/gmock.h>

#include "unidle/base/testing/fake_clock.h"

namespace unidle::tune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Circumstances of_a_program() {
  Circumstances circumstances;
  circumstances.of_program = true;
  circumstances.had_candidates = true;
  circumstances.searched = 5;
  circumstances.found_better = true;
  return circumstances;
}

TunerOutcome verified(double ratio, bool shown) {
  TunerOutcome outcome;
  Verification& found = outcome.verification.emplace();
  found.ratio = ratio;
  found.interval = {ratio - 0.1, ratio + 0.1};
  found.baseline = {10, 10, 10};
  found.winner = {10 * ratio, 10 * ratio, 10 * ratio};
  found.shown = shown;
  found.compared = true;
  return outcome;
}

TEST(Conclusion, AGainComesWithItsInterval) {
  EXPECT_EQ(conclusion_of(verified(1.5, true), of_a_program()),
            "1.50x as fast as before (95 % interval 1.40 to 1.60, 3 pairs)");
  Circumstances short_budget = of_a_program();
  short_budget.untried = 2;
  EXPECT_EQ(
      conclusion_of(verified(1.5, true), short_budget),
      "1.50x as fast as before (95 % interval 1.40 to 1.60, 3 pairs); the budget ended before 2 more changes were "
      "tried");
}

TEST(Conclusion, OfNothingButFailuresNothingIsKnown) {
  TunerOutcome outcome;
  outcome.all_failed = true;
  outcome.trials.resize(2);
  outcome.trials.back().why = "the disk is full";
  EXPECT_EQ(conclusion_of(outcome, of_a_program()),
            "nothing is known: every change that was tried failed, the last with: the disk is full");
}

TEST(Conclusion, SaysWhatNobodyCompared) {
  TunerOutcome outcome = verified(1.5, true);
  outcome.verification->compared = false;
  EXPECT_THAT(conclusion_of(outcome, of_a_program()), HasSubstr("no loss or metric to compare"));
  Circumstances other = of_a_program();
  other.other_effective_batch = true;
  EXPECT_THAT(conclusion_of(outcome, other), HasSubstr("the effective batch size differs"));
}

TEST(Conclusion, NothingToGainHasItsReason) {
  TunerOutcome narrow = verified(1.0, false);
  narrow.verification->interval = {0.98, 1.02};
  EXPECT_EQ(conclusion_of(narrow, of_a_program()),
            "nothing to gain: the best is 1.00x as fast as the baseline (95 % interval 0.98 to 1.02)");
  TunerOutcome broken = verified(1.5, false);
  broken.verification->parity.held = false;
  broken.verification->parity.why = "loss 2 instead of 1";
  EXPECT_EQ(conclusion_of(broken, of_a_program()), "the fastest change cannot be used: loss 2 instead of 1");
  Circumstances tried = of_a_program();
  tried.found_better = false;
  EXPECT_EQ(conclusion_of({}, tried), "nothing to gain: no change was faster than the program as it is");
  LoggedTrial trial;
  trial.changes = {{"precision.amp", "bf16"}};
  trial.verdict = "parity broken";
  TunerOutcome other_losses;
  other_losses.trials = {trial};
  EXPECT_EQ(conclusion_of(other_losses, tried),
            "nothing to gain: with precision.amp=bf16 the losses differ, so it was rejected, and no other "
            "change was faster");
  Circumstances none = of_a_program();
  none.had_candidates = false;
  EXPECT_THAT(conclusion_of({}, none), HasSubstr("no setting that could matter can be changed"));
}

TEST(Conclusion, IsOpenWhenTheSearchCannotTell) {
  EXPECT_THAT(conclusion_of(verified(1.0, false), of_a_program()),
              AllOf(StartsWith("the search is inconclusive: the best is 1.00x"), HasSubstr("differ too much")))
      << "up to 1.10x";
  TunerOutcome narrow = verified(1.0, false);
  narrow.verification->interval = {0.98, 1.02};
  Circumstances few = of_a_program();
  few.untried = 4;
  EXPECT_THAT(conclusion_of(narrow, few),
              AllOf(StartsWith("the search is inconclusive: "), HasSubstr("4 more changes"), HasSubstr("--trials")));
  few.first.trials = 100;
  EXPECT_THAT(conclusion_of(narrow, few), AllOf(HasSubstr("4 more changes"), Not(HasSubstr("--trials"))));
  Circumstances busy = of_a_program();
  busy.disturbed = true;
  EXPECT_THAT(conclusion_of(narrow, busy),
              AllOf(StartsWith("the search is inconclusive: "), HasSubstr("quiet machine")));
  busy.found_better = false;
  EXPECT_THAT(conclusion_of({}, busy), StartsWith("the search is inconclusive: no change was faster"));
  TunerOutcome better;
  better.best = {{"loader.workers", 2}};
  EXPECT_THAT(conclusion_of(better, of_a_program()),
              StartsWith("the search is inconclusive: loader.workers=2 was faster"));
  TunerOutcome one = verified(1.5, false);
  one.verification->winner = {15};
  EXPECT_EQ(conclusion_of(one, of_a_program()),
            "the search is inconclusive: 1.50x as fast as the baseline in one pair, then the budget ended");
}

TEST(Conclusion, OfTwoPairsShowsTheirRatios) {
  TunerOutcome two = verified(1.7, false);
  two.verification->interval = {0.18, 16.13};
  two.verification->winner = {24, 11.5};
  EXPECT_EQ(conclusion_of(two, of_a_program()),
            "the search is inconclusive: 2 pairs gave 2.40x and 1.15x; too few pairs, or too different, to prove a "
            "gain; give more time with --budget");
  two.verification->winner = {50, 54};
  two.verification->shown = true;
  two.verification->ratio = 5.2;
  EXPECT_EQ(conclusion_of(two, of_a_program()), "5.20x as fast as before (2 pairs: 5.00x and 5.40x)");
}

TEST(WhatTheBudgetBuys, IsSaidAtTheStart) {
  unidle::testing::FakeClock clock;
  Budget budget(clock, 200, 12);
  budget.expect(14, 14, kLeastFreshPairs);
  EXPECT_EQ(what_it_buys(budget), "the budget of 200 s buys up to 10 trials of about 14 s; 56 s are kept to verify");
  budget.expect(60, 60, kLeastFreshPairs);
  EXPECT_EQ(
      what_it_buys(budget),
      "the budget of 200 s buys no trial: one takes about 60 s, and 240 s are kept to verify; --budget 530s buys 4");
}

TEST(Conclusion, SaysWhatBudgetWouldDo) {
  Circumstances brief = of_a_program();
  brief.searched = 1;
  brief.first = {10, 60, 45, 80, 12};
  EXPECT_THAT(conclusion_of({}, brief), HasSubstr("first trial took 10 s, 60 s more are kept back"));
  EXPECT_THAT(conclusion_of({}, brief), HasSubstr("the budget is 45 s; --budget 90s"));
  brief.first = {10, 60, 600, 80, 1};
  EXPECT_THAT(conclusion_of({}, brief), HasSubstr("--trials 1"));
  brief.first.trials = 12;
  EXPECT_THAT(conclusion_of({}, brief), HasSubstr("nothing that can be changed was left"));
}

TEST(Conclusion, AStopSaysWhatWasBest) {
  TunerOutcome outcome;
  outcome.interrupted = true;
  EXPECT_EQ(conclusion_of(outcome, of_a_program()), "stopped before anything better was found; nothing was advised");
  outcome.best = {{"loader.workers", 2}};
  EXPECT_THAT(conclusion_of(outcome, of_a_program()),
              StartsWith("stopped; the best so far (loader.workers=2) is not verified"));
}

TEST(Conclusion, SaysWhenOthersUsedTheCpus) {
  Circumstances busy = of_a_program();
  busy.disturbed = true;
  busy.disturbed_runs = 4;
  busy.measured = 9;
  EXPECT_THAT(conclusion_of(verified(1.5, true), busy), HasSubstr("during 4 of 9 trials, so the figures are rough"));
}

}  // namespace
}  // namespace unidle::tune
