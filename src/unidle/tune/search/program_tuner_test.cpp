#include "unidle/tune/search/tuner.h"

#include <gmock/gmock.h>

#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::ElementsAre;
using testing::FakeRunner;
using ::testing::HasSubstr;

const knobs::Settings kSettings = {{"loader.workers", 0}, {"cpu.threads", 2}};

TEST(ProgramTuner, ARefusedKnobIsReportedAndDoesNotCount) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings& changes) {
    TrialResult result = at_rate(100);
    if (changes.contains("loader.workers")) {
      result.rate = 200;  // faster, but not because of this
      result.refused["loader.workers"] = "given by position in the program";
    }
    return result;
  });
  Tuner tuner(runner, clock, kSettings, {{{{"loader.workers", 2}}, "why", 0.5, false}}, {});
  const TunerOutcome outcome = tuner.run({});
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_THAT(outcome.not_taken, ElementsAre("loader.workers=2: given by position in the program"));
  EXPECT_EQ(outcome.trials.at(1).verdict, "not taken");
}

TEST(ProgramTuner, WhatTrialsProposeIsTriedOnlyWhereItIsFollowed) {
  for (const bool follows : {true, false}) {
    unidle::testing::FakeClock clock;
    FakeRunner runner(clock, [](const knobs::Settings& changes) {
      TrialResult result = at_rate(changes.contains("loader.workers") ? 150 : 100);
      result.suggestions = {{{{"optimizer.fused", true}}, "why", 1.2, true}};
      return result;
    });
    TunerOptions options;
    options.follow_diagnoses = follows;
    Tuner tuner(runner, clock, kSettings, {{{{"loader.workers", 2}}, "why", 1, true}}, options);
    EXPECT_EQ(tuner.run({}).changes.size(), 1U);
    const bool tried = std::ranges::any_of(
        runner.asked, [](const knobs::Settings& changes) { return changes.contains("optimizer.fused"); });
    EXPECT_EQ(tried, follows);
  }
}

TunerOutcome tune_fastest(double first, double later) {
  unidle::testing::FakeClock clock;
  int trials = 0;
  FakeRunner runner(clock, [&](const knobs::Settings& changes) {
    const double factor = changes.empty() ? 1 : ++trials == 1 ? first : later;
    return at_rate(100 * factor);
  });
  TunerOptions options;
  options.verify_fastest = true;
  options.least_gain = 0.03;
  options.of_program = true;
  Tuner tuner(runner, clock, kSettings, {{{{"loader.workers", 2}}, "why", 0.5, false}}, options);
  return tuner.run({});
}

TEST(ProgramTuner, NothingToGainComesWithAnInterval) {
  const TunerOutcome outcome = tune_fastest(1.01, 1.01);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_TRUE(outcome.best.empty());
  ASSERT_TRUE(outcome.verification);
  EXPECT_NEAR(outcome.verification->ratio, 1.01, 1e-9);
  EXPECT_FALSE(outcome.verification->shown) << "one percent is not worth a change";
  EXPECT_THAT(outcome.conclusion, HasSubstr("nothing to gain: the fastest change tried is 1.01x"));
}

TEST(ProgramTuner, VerifyingTheFastestMayShowAGainThatItsTrialMissed) {
  const TunerOutcome outcome = tune_fastest(1.0, 1.5);
  ASSERT_EQ(outcome.changes.size(), 1u);
  EXPECT_EQ(outcome.changes[0].to, 2);
}

}  // namespace
}  // namespace unidle::tune
