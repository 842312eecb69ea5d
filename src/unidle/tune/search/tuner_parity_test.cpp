// A search keeps only changes that train the same thing.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "unidle/tune/testing/whole_search.h"

namespace unidle::tune {
namespace {

using ::testing::Contains;
using testing::FakeRunner;
using ::testing::HasSubstr;
using testing::product;
using testing::WholeSearch;

TEST(TunerParity, RejectsAChangeThatBreaksTheLoss) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"cache.features", {{"memory", 3.0}}}, {"loader.workers", {{"2", 1.5}}}});
    result.loss = changes.contains("cache.features") ? 1.2 : 1.0;
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.best.contains("cache.features"));
  EXPECT_EQ(outcome.best.at("loader.workers"), 2);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::verdict, "parity broken")));
}

/// A search whose trials have the loss `loss_of`, given the changes and the number of trials so far.
TunerOutcome tuned_with_losses(const std::function<double(const knobs::Settings&, int)>& loss_of) {
  WholeSearch fixture;
  int trials = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.loss = loss_of(changes, trials++);
    return result;
  });
  return fixture.tune(runner);
}

long repeats_in(const TunerOutcome& outcome) {
  return std::count_if(outcome.trials.begin(), outcome.trials.end(), [](const LoggedTrial& trial) {
    return trial.stage == "reference" && trial.verdict == "baseline";
  });
}

/// An unseeded program: its losses differ by up to 8 %, whatever is changed.
double unseeded(const knobs::Settings&, int trial) {
  static constexpr std::array kDraws = {1.0, 1.07, 0.96, 1.03, 0.98, 1.05, 0.97, 1.02, 1.04, 0.99};
  return kDraws[static_cast<std::size_t>(trial) % kDraws.size()];
}

TEST(TunerParity, AnExactChangeMayDifferAsTheProgramDiffersFromItself) {
  const TunerOutcome outcome = tuned_with_losses(unseeded);
  EXPECT_TRUE(outcome.best.contains("loader.workers"));
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->parity.held) << outcome.verification->parity.why;
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_GE(repeats_in(outcome), 1);
}

TEST(TunerParity, AWorseLossBeyondTheProgramsOwnSpreadIsRejected) {
  const TunerOutcome outcome = tuned_with_losses([](const knobs::Settings& changes, int trial) {
    return unseeded(changes, trial) + (changes.contains("loader.workers") ? 0.8 : 0);
  });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_THAT(outcome.trials, Contains(::testing::Field(&LoggedTrial::verdict, "parity broken")));
}

TEST(TunerParity, AProgramThatRepeatsItselfIsRunTwiceBeforeALossIsRejected) {
  const TunerOutcome outcome = tuned_with_losses(
      [](const knobs::Settings& changes, int) { return changes.contains("loader.workers") ? 1.06 : 1.0; });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_EQ(repeats_in(outcome), 1);
  for (std::size_t i = 0; i < outcome.trials.size(); ++i) {
    EXPECT_EQ(outcome.trials[i].index, static_cast<int>(i) + 1);
  }
}

TEST(TunerParity, ALossThatIsNoNumberNeedsNoRepeats) {
  const TunerOutcome outcome = tuned_with_losses(
      [](const knobs::Settings& changes, int) { return changes.contains("loader.workers") ? std::nan("") : 1.0; });
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_EQ(repeats_in(outcome), 0);
}

TEST(TunerParity, RejectsAChangeThatBreaksTheMetric) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"precision.amp", {{"bf16", 3.0}}}, {"loader.workers", {{"2", 1.5}}}});
    result.metrics["psnr"] = changes.contains("precision.amp") ? 24.8 : 25.0;
    return result;
  });
  EXPECT_FALSE(fixture.tune(runner).best.contains("precision.amp"));
}

TEST(TunerParity, AWorseLossThatChanceHidesInOneTrialShowsInAll) {
  const auto tune_with = [](double worse, bool seeded) {
    WholeSearch fixture;
    int draw = 0;
    FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
      // A gain that needs six pairs. The loss has a spread of 2 %, so that a single trial may differ by 8 % by chance.
      TrialResult result = product(changes, {{"loader.workers", {{"2", 1.07}}}});
      if (changes.contains("loader.workers")) {
        result.loss = 1 + worse + (seeded ? 0 : 0.001 * (++draw % 7));
        result.loss_error = 0.02;
      }
      return result;
    });
    return fixture.tune(runner);
  };
  EXPECT_FALSE(tune_with(0.01, false).changes.empty());
  const TunerOutcome worse = tune_with(0.06, false);
  EXPECT_TRUE(worse.changes.empty());
  ASSERT_TRUE(worse.verification);
  EXPECT_FALSE(worse.verification->parity.held);
  EXPECT_FALSE(tune_with(0.06, true).changes.empty()) << "the same draw six times says no more than once";
}

TEST(TunerParity, SaysWhenThereWasNoLossToCompare) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    result.loss.reset();
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.verification->compared);
  EXPECT_THAT(outcome.conclusion, HasSubstr("no loss or metric to compare"));
}

}  // namespace
}  // namespace unidle::tune
