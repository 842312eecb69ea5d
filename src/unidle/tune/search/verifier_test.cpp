#include "unidle/tune/search/verifier.h"

#include <gmock/gmock.h>

#include <limits>

#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::ElementsAre;
using testing::FakeRunner;
using ::testing::HasSubstr;

const knobs::Settings kWinner = {{"loader.workers", 2}};

/// A verification alone, with runs of five seconds.
struct Pairs {
  explicit Pairs(FakeRunner::Surface surface, double budget_s = 600, double noise = 0)
      : runner(clock, std::move(surface), noise), log(runner, stop.get_token(), {}), budget(clock, budget_s, 12) {
    repeats.add(at_rate(100));
    budget.expect(5, 5);
  }

  std::optional<Verification> verify(double least_gain = 0) {
    return Verifier(log, budget, repeats, {6, least_gain}).verify(kWinner);
  }

  unidle::testing::FakeClock clock;
  std::stop_source stop;
  FakeRunner runner;
  TrialLog log;
  Budget budget;
  Repeats repeats{knobs::Settings{}};
};

FakeRunner::Surface winner_by(double factor) {
  return [factor](const knobs::Settings& changes) { return at_rate(changes.empty() ? 100 : 100 * factor); };
}

TEST(Verifier, EveryOtherPairIsTurnedRound) {
  Pairs pairs(winner_by(1.5));
  const auto found = pairs.verify();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->clear);
  EXPECT_TRUE(found->shown);
  EXPECT_NEAR(found->ratio, 1.5, 1e-12);
  std::vector<std::string> stages;
  for (const LoggedTrial& trial : pairs.log.trials()) {
    stages.push_back(trial.stage);
  }
  EXPECT_THAT(stages, ElementsAre("verify-baseline", "verify-winner", "verify-winner", "verify-baseline",
                                  "verify-baseline", "verify-winner"));
}

TEST(Verifier, ASmallGainTakesAllPairs) {
  const auto found = Pairs(winner_by(1.05)).verify();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->clear);
  EXPECT_TRUE(found->shown);
  EXPECT_EQ(found->winner.size(), 6u);
}

TEST(Verifier, WhatIsNotWorthAChangeIsNotShown) {
  const auto found = Pairs(winner_by(1.02)).verify(0.03);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->shown);
  EXPECT_EQ(found->winner.size(), 6u) << "further pairs could not help";
}

TEST(Verifier, TheBudgetLeavesItThreePairs) {
  const auto found = Pairs(winner_by(1.05), 1).verify();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->winner.size(), 3u);
  EXPECT_FALSE(found->shown) << "three pairs show only what is beyond doubt";
}

TEST(Verifier, AnotherLossEndsIt) {
  Pairs pairs([](const knobs::Settings& changes) {
    TrialResult result = at_rate(changes.empty() ? 100 : 150);
    result.loss = changes.empty() ? 1.0 : std::numeric_limits<double>::quiet_NaN();
    return result;
  });
  const auto found = pairs.verify();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->parity.held);
  EXPECT_FALSE(found->shown);
  EXPECT_EQ(pairs.log.trials().size(), 2u);
  EXPECT_EQ(pairs.log.trials().back().verdict, "parity broken");
}

TEST(Verifier, ASecondPairThatFailsEndsIt) {
  Pairs pairs([](const knobs::Settings& changes) {
    TrialResult result = at_rate(100);
    result.ok = changes.empty();
    result.problem = "out of memory";
    return result;
  });
  const auto found = pairs.verify();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->failures, 2);
  EXPECT_FALSE(found->shown);
  EXPECT_THAT(found->parity.why, HasSubstr("the winner failed: out of memory"));
}

TEST(Verifier, SaysWhetherThereWasALossToCompare) {
  EXPECT_TRUE(Pairs(winner_by(1.5)).verify()->compared);
  Pairs silent([](const knobs::Settings& changes) {
    TrialResult result = at_rate(changes.empty() ? 100 : 150);
    result.loss.reset();
    return result;
  });
  EXPECT_FALSE(silent.verify()->compared);
}

TEST(Verifier, AStopShowsNothing) {
  Pairs pairs(winner_by(1.5));
  pairs.runner.before = [&](int number) {
    if (number == 3) {
      pairs.stop.request_stop();
    }
  };
  EXPECT_FALSE(pairs.verify());
  EXPECT_EQ(pairs.log.trials().size(), 2u);
}

}  // namespace
}  // namespace unidle::tune
