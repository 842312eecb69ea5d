#include "unidle/tune/search/tuner.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/tune/testing/whole_search.h"

namespace unidle::tune {
namespace {

using ::testing::AllOf;
using testing::at_rate;
using testing::best_of;
using ::testing::Contains;
using testing::Factors;
using testing::FakeRunner;
using ::testing::HasSubstr;
using testing::naive_settings;
using testing::product;
using testing::search_trials;
using testing::WholeSearch;

std::vector<Factors> surfaces() {
  return {
      {{"loader.workers", {{"2", 2.0}, {"4", 1.8}}}, {"cache.features", {{"memory", 1.5}}}},
      {{"layout.channels_last", {{"true", 1.3}}}, {"optimizer.fused", {{"true", 1.06}}}},
      {{"precision.amp", {{"bf16", 1.7}}}, {"batch.size", {{"16", 1.2}, {"8", 1.15}}}},
      {{"precision.amp", {{"bf16", 0.4}}}, {"loader.workers", {{"2", 1.4}}}, {"optimizer.fused", {{"true", 0.9}}}},
      {{"loader.workers", {{"2", 0.7}, {"1", 0.8}, {"4", 0.6}}}, {"layout.channels_last", {{"true", 1.5}}}},
      {{"batch.size", {{"16", 0.8}, {"8", 1.3}}}, {"metrics.interval", {{"50", 1.1}}}},
      {},
  };
}

class OnSurface : public ::testing::TestWithParam<int> {};

TEST_P(OnSurface, ComesWithinThreePercentOfTheBest) {
  const Factors factors = surfaces()[static_cast<std::size_t>(GetParam())];
  int within = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WholeSearch fixture;
    FakeRunner runner(
        fixture.clock, [&](const knobs::Settings& changes) { return product(changes, factors); }, 0.008, seed);
    const TunerOutcome outcome = fixture.tune(runner);
    knobs::Settings chosen;
    for (const knobs::Change& change : outcome.changes) {
      chosen.set(change.knob, *change.to);
    }
    EXPECT_LE(search_trials(outcome), 12);
    within += product(chosen, factors).rate >= 0.97 * best_of(factors);
  }
  EXPECT_GE(within, 19) << "of 20 seeds";
}

INSTANTIATE_TEST_SUITE_P(Surfaces, OnSurface, ::testing::Range(0, 7));

TEST(Tuner, TakesBackWhatGivesNothing) {
  const Factors factors = {{"loader.workers", {{"2", 2.0}}}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    WholeSearch fixture;
    FakeRunner runner(
        fixture.clock, [&](const knobs::Settings& changes) { return product(changes, factors); }, 0.004, seed);
    const TunerOutcome outcome = fixture.tune(runner);
    ASSERT_FALSE(outcome.changes.empty());
    // Only a change for which no trial was left may stay, and the one that works must.
    EXPECT_THAT(outcome.best, Contains(::testing::Pair("loader.workers", 2)));
    EXPECT_LE(outcome.changes.size(), 2u) << knobs::describe(outcome.best);
  }
}

TEST(Tuner, NoQueueDepthWithoutWorkers) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"loader.prefetch_factor", {{"4", 1.2}}},  // a lucky trial
                             {"layout.channels_last", {{"true", 2.0}}},
                             {"loader.workers", {{"1", 0.8}, {"2", 0.8}, {"4", 0.8}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.best.contains("loader.workers"));
  EXPECT_FALSE(outcome.best.contains("loader.prefetch_factor"));
  EXPECT_EQ(outcome.best.at("layout.channels_last"), true);
}

TEST(Tuner, NothingToGainLeavesTheConfigurationAlone) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) { return at_rate(100); }, 0.01);
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_THAT(outcome.conclusion, HasSubstr("nothing to gain"));
}

TEST(Tuner, DropsAKnobThatDidNotTake) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    for (const auto& [knob, value] : changes) {
      result.effective[knob] = value.to_text();
    }
    if (changes.contains("layout.channels_last")) {
      result.effective["layout.channels_last"] = "false";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_FALSE(outcome.best.contains("layout.channels_last"));
  ASSERT_EQ(outcome.not_taken.size(), 1u);
  EXPECT_THAT(outcome.not_taken[0], AllOf(HasSubstr("layout.channels_last"), HasSubstr("false")));
}

TEST(Tuner, TriesWhatTheDiagnosisProposesFirst) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"3", 2.0}}}});
    if (changes.empty()) {
      result.suggestions.push_back(
          {{{"loader.workers", 3}}, "loader-no-workers: start three workers", kMeasuredFirst + 0.5, true});
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(runner.asked.at(1).at("loader.workers"), 3);
  EXPECT_EQ(outcome.best.at("loader.workers"), 3);
}

TEST(Tuner, AFailedTrialIsNotTheEnd) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    if (changes.contains("cache.features")) {
      result.ok = false;
      result.problem = "out of memory";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("loader.workers"), 2);
  EXPECT_FALSE(outcome.best.contains("cache.features"));
}

TEST(Tuner, AFailedBaselineIsAnError) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) {
    TrialResult result;
    result.problem = "no data";
    return result;
  });
  try {
    fixture.tune(runner);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kChild);
  }
}

TEST(Tuner, KeepsToItsBudgets) {
  const Factors factors = {{"loader.workers", {{"2", 1.5}}}, {"optimizer.fused", {{"true", 1.1}}}};
  WholeSearch few;
  few.options.trials = 3;
  FakeRunner first(few.clock, [&](const knobs::Settings& changes) { return product(changes, factors); });
  EXPECT_EQ(search_trials(few.tune(first)), 3);

  WholeSearch brief;
  brief.options.budget_s = 60;
  FakeRunner second(brief.clock, [&](const knobs::Settings& changes) { return product(changes, factors); });
  const std::int64_t start = brief.clock.now_ns();
  const TunerOutcome outcome = brief.tune(second);
  EXPECT_LT(seconds(brief.clock.now_ns() - start), 60.001);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
}

TEST(Tuner, SaysWhenTheBudgetWasTooSmallForAnything) {
  WholeSearch fixture;
  fixture.options.budget_s = 15;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) { return at_rate(100); });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_TRUE(outcome.changes.empty());
  const std::string option = "--budget ";
  const std::size_t at = outcome.conclusion.find(option);
  ASSERT_NE(at, std::string::npos) << outcome.conclusion;

  WholeSearch enough;
  enough.options.budget_s = std::stod(outcome.conclusion.substr(at + option.size()));
  FakeRunner another(enough.clock, [](const knobs::Settings&) { return at_rate(100); });
  EXPECT_GE(search_trials(enough.tune(another)), 2) << outcome.conclusion;
}

TEST(Tuner, ABudgetThatWasSpentInPartIsNamedAsItWasGiven) {
  WholeSearch fixture;
  fixture.options.budget_s = 90;
  fixture.options.spent_s = 80;
  FakeRunner runner(fixture.clock, [](const knobs::Settings&) { return at_rate(100); });
  EXPECT_NE(fixture.tune(runner).conclusion.find("the budget is 90 s"), std::string::npos);
}

TEST(Tuner, AStopEndsItAndWritesNothing) {
  for (const int at : {1, 2, 4, 14}) {
    WholeSearch fixture;
    FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
      return product(changes, {{"loader.workers", {{"2", 1.5}}}});
    });
    runner.before = [&](int number) {
      if (number == at) {
        fixture.stop.request_stop();
      }
    };
    const TunerOutcome outcome = fixture.tune(runner);
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_TRUE(outcome.changes.empty());
    EXPECT_EQ(static_cast<int>(runner.asked.size()), at);
    EXPECT_THAT(outcome.conclusion, HasSubstr("stopped"));
  }
}

TEST(Tuner, VerifiesInTurns) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"loader.workers", {{"2", 1.5}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  std::vector<std::string> order;
  for (const LoggedTrial& trial : outcome.trials) {
    if (trial.stage.starts_with("verify")) {
      order.push_back(trial.stage);
    }
  }
  const std::vector<std::string> expected = {"verify-baseline", "verify-winner",   "verify-winner",
                                             "verify-baseline", "verify-baseline", "verify-winner"};
  EXPECT_EQ(order, expected);
  EXPECT_NEAR(outcome.verification->ratio, 1.5, 1e-9);
}

TEST(Tuner, OnePairThatFailsIsNotTheEnd) {
  WholeSearch fixture;
  int verifying = 0;
  FakeRunner runner(fixture.clock, [&](const knobs::Settings& changes) {
    TrialResult result = product(changes, {{"loader.workers", {{"2", 1.5}}}});
    if (changes.empty() && ++verifying == 2) {
      result.ok = false;
      result.problem = "took too long";
    }
    return result;
  });
  const TunerOutcome outcome = fixture.tune(runner);
  ASSERT_TRUE(outcome.verification);
  EXPECT_TRUE(outcome.verification->shown);
  EXPECT_EQ(outcome.verification->failures, 1);
}

TEST(Tuner, KeepsTheEffectiveBatch) {
  WholeSearch fixture;
  FakeRunner runner(fixture.clock, [](const knobs::Settings& changes) {
    return product(changes, {{"batch.size", {{"16", 2.0}, {"4", 1.4}, {"8", 1.6}}}});
  });
  const TunerOutcome outcome = fixture.tune(runner);
  EXPECT_EQ(outcome.best.at("batch.size"), 16);
  EXPECT_EQ(outcome.best.at("batch.accumulation"), 1);
  for (const knobs::Settings& asked : runner.asked) {
    const knobs::Settings all = knobs::overlaid(naive_settings(), asked);
    EXPECT_EQ(all.integer("batch.size") * all.integer("batch.accumulation"), 16);
  }
}

}  // namespace
}  // namespace unidle::tune
