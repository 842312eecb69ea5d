#include "unidle/tune/search/verifier.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
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
  explicit Pairs(FakeRunner::Surface surface, double budget_s = 600, double noise = 0, std::uint64_t seed = 1)
      : runner(clock, std::move(surface), noise, seed), log(runner, stop.get_token(), {}), budget(clock, budget_s, 12) {
    repeats.add(at_rate(100));
    budget.expect(5, 5, kLeastPairs);
  }

  std::optional<Verification> verify(double least_gain = 0,
                                     const std::vector<experiment::PairOfRates>& of_search = {}) {
    return Verifier(log, budget, repeats, {6, least_gain}).verify(kWinner, of_search);
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

TEST(Verifier, AClearGainThatVariesTakesMorePairsThanThree) {
  // Each pair gains more than noise explains. Three of them leave an interval from 0.9 to 2.
  std::size_t pair = 0;
  const auto found = Pairs([&](const knobs::Settings& changes) {
                       constexpr std::array kGains = {1.15, 1.6, 1.3, 1.35};
                       return at_rate(changes.empty() ? 100 : 100 * kGains.at(pair++));
                     }).verify();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->clear);
  EXPECT_TRUE(found->shown);
  EXPECT_EQ(found->winner.size(), 4u);
}

struct Verifications {
  double shown = 0;  // in percent
  double pairs = 0;  // mean
};

/// Many verifications of a winner by this factor when runs of one setting scatter by 3 %.
Verifications verifications(double factor) {
  constexpr int kAll = 400;
  Verifications all;
  for (std::uint64_t seed = 1; seed <= kAll; ++seed) {
    const auto found = Pairs(winner_by(factor), 600, 0.03, seed).verify();
    all.shown += found && found->shown ? 100.0 / kAll : 0;
    all.pairs += found ? static_cast<double>(found->winner.size()) / kAll : 0;
  }
  return all;
}

TEST(Verifier, ShowsGainsThroughScatterAndHardlyEverOneThatIsNone) {
  EXPECT_LE(verifications(1).shown, 7) << "after each pair from the sixth on it may end";
  EXPECT_GE(verifications(1.05).shown, 75);
  EXPECT_GE(verifications(1.1).shown, 97);
  const Verifications large = verifications(1.3);
  EXPECT_GE(large.shown, 99);
  EXPECT_LE(large.pairs, 3.5);
}

TEST(Verifier, WhatIsNotWorthAChangeIsNotShown) {
  const auto found = Pairs(winner_by(1.02)).verify(0.03);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->shown);
  EXPECT_EQ(found->winner.size(), 6u) << "further pairs could not help";
}

TEST(Verifier, AGainThatSomePairsContradictIsNotShown) {
  int winners = 0;
  Pairs pairs([&](const knobs::Settings& changes) {
    return at_rate(changes.empty() ? 100 : ++winners % 3 == 0 ? 70 : 130);
  });
  const auto found = pairs.verify();
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->ratio, 1.3, 1e-12);
  EXPECT_LT(found->interval.low, 1);
  EXPECT_GT(found->interval.high, 1);
  EXPECT_FALSE(found->shown);
}

TEST(Verifier, EndsWithTheBudget) {
  const auto found = Pairs(winner_by(1.05), 34).verify();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->winner.size(), 3u);
  EXPECT_FALSE(found->shown) << "three pairs show only what is beyond doubt";
  EXPECT_FALSE(Pairs(winner_by(1.05), 9).verify()) << "no time for one pair";
}

TEST(Verifier, TwoPairsThatAgreeSufficeAtTheEndOfTheBudget) {
  const std::vector<experiment::PairOfRates> of_search = {{{100, {}}, {148, {}}}};
  Pairs large(winner_by(1.5), 12);
  const auto found = large.verify(0, of_search);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->shown);
  EXPECT_EQ(found->winner.size(), 2u);
  EXPECT_GT(found->interval.low, 1.3);
  EXPECT_FALSE(Pairs(winner_by(1.15), 12).verify(0, of_search)->shown) << "they do not agree";
  EXPECT_FALSE(Pairs(winner_by(1.05), 12).verify(0, of_search)->shown) << "small";
}

TEST(Verifier, ARunThatTheBudgetEndsIsNoFailure) {
  int runs = 0;
  Pairs pairs(
      [&](const knobs::Settings&) {
        TrialResult result = at_rate(100);
        result.seconds = ++runs > 2 ? 30 : 5;
        return result;
      },
      25);
  const auto found = pairs.verify();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->parity.held);
  EXPECT_EQ(found->winner.size(), 1u);
  EXPECT_LE(pairs.budget.elapsed_s(), 25 * 1.1 + 1e-6);
}

const std::vector<experiment::PairOfRates> kPairOfSearch = {{{100, {}}, {140, {}}}};

TEST(Verifier, APairOfTheSearchCountsForAGainBeyondDoubt) {
  Pairs pairs(winner_by(1.5));
  const auto found = pairs.verify(0, kPairOfSearch);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->shown);
  EXPECT_EQ(found->winner.size(), 3u);
  EXPECT_EQ(pairs.log.trials().size(), 4u) << "two fresh pairs";
  EXPECT_EQ(pairs.log.trials().front().stage, "verify-winner") << "the pair of the search began with the baseline";
}

TEST(Verifier, APairOfTheSearchDoesNotCountForASmallGain) {
  const auto found = Pairs(winner_by(1.05)).verify(0, kPairOfSearch);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->shown);
  EXPECT_EQ(found->winner.size(), 6u);
  EXPECT_NEAR(found->ratio, 1.05, 1e-9);
  EXPECT_FALSE(Pairs(winner_by(1)).verify(0, kPairOfSearch)->shown) << "one lucky run is no gain";
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
