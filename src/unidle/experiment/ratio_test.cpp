#include "unidle/experiment/ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "unidle/experiment/turns.h"

namespace unidle::experiment {
namespace {

PairOfRates pair_of(double a, double b) { return {{a, {}}, {b, {}}}; }

TEST(RatioOf, PairsIsTheirMedian) {
  // Both sides of each pair are slower than in the pair before.
  const auto ratio = ratio_of({pair_of(100, 150), pair_of(80, 121), pair_of(60, 89), pair_of(50, 75)});
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_NEAR(ratio->value, 1.5, 1e-9);
  EXPECT_GT(ratio->interval->low, 1.45);
  EXPECT_LT(ratio->interval->high, 1.55);
}

TEST(RatioOf, TwoPairsThatDifferShowNothing) {
  const auto ratio = ratio_of({pair_of(100, 105), pair_of(100, 109)});
  ASSERT_TRUE(ratio && ratio->interval);
  // Logarithms 0.04879 and 0.08618: their mean, and 12.706 standard errors of 0.01869 to each side.
  EXPECT_NEAR(ratio->interval->low, std::exp(0.06748 - 12.706 * 0.01869), 1e-3);
  EXPECT_NEAR(ratio->interval->high, std::exp(0.06748 + 12.706 * 0.01869), 1e-3);
}

/// Share of comparisons that show a difference, in percent. Runs of one setting scatter by 3 %; a pair's runs share
/// the machine's drift. `gain` of the second setting.
double shown_percent(std::size_t pairs, double gain) {
  constexpr int kComparisons = 2000;
  std::mt19937_64 random(pairs);
  std::normal_distribution<double> rate(1, 0.03);
  int shown = 0;
  for (int comparison = 0; comparison < kComparisons; ++comparison) {
    std::vector<PairOfRates> runs;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double drift = 1 - 0.05 * static_cast<double>(pair);
      runs.push_back(pair_of(drift * rate(random), drift * gain * rate(random)));
    }
    shown += judge_speed(ratio_of(runs), 0.05) == SpeedChange::kNoDifference ? 0 : 1;
  }
  return 100.0 * shown / kComparisons;
}

TEST(RatioOf, EqualSettingsDifferInOneComparisonOfTwenty) {
  for (const std::size_t pairs : {2, 3, 4, 5, 6, 7, 8, 10, 12}) {
    const double shown = shown_percent(pairs, 1);
    EXPECT_LE(shown, 7) << pairs << " pairs";
    EXPECT_GE(shown, 3) << pairs << " pairs: an interval that is too wide hides real differences";
  }
}

TEST(RatioOf, MorePairsShowSmallerGains) {
  EXPECT_GE(shown_percent(3, 1.3), 98);
  EXPECT_GE(shown_percent(4, 1.1), 75);
  EXPECT_GE(shown_percent(6, 1.1), 90);
  EXPECT_GE(shown_percent(10, 1.05), 75);
}

TEST(RatioOf, PairsThatAgreeByChanceAreNotMoreCertainThanTheirSteps) {
  const PairOfRates pair = {{10, {9, 9.5, 10, 10.5, 11}}, {20, {18, 19, 20, 21, 22}}};
  const auto of_steps = ratio_of({pair})->interval;
  const auto of_pairs = ratio_of({pair, pair})->interval;
  ASSERT_TRUE(of_steps && of_pairs);
  const double steps = std::log(of_steps->high / of_steps->low);
  EXPECT_NEAR(std::log(of_pairs->high / of_pairs->low), steps / std::sqrt(2), 0.15 * steps);
}

TEST(RatioOf, OneOutlierDoesNotMoveIt) {
  const auto ratio = ratio_of(
      {pair_of(1, 1.5), pair_of(1, 1.51), pair_of(1, 1.49), pair_of(1, 1.5), pair_of(1, 1.52), pair_of(1, 0.4)});
  EXPECT_GT(ratio->interval->low, 1.4);
  EXPECT_LT(ratio->interval->high, 1.53);
}

TEST(RatioOf, OnePairHasTheIntervalOfItsSteps) {
  EXPECT_FALSE(ratio_of({pair_of(1, 2)})->interval);
  const auto ratio = ratio_of({{{10, {9, 10, 11}}, {20, {19, 20, 21}}}});
  ASSERT_TRUE(ratio && ratio->interval);
  EXPECT_LT(ratio->interval->low, 2);
  EXPECT_GT(ratio->interval->high, 2);
  EXPECT_EQ(ratio->interval->low, ratio_of({{{10, {9, 10, 11}}, {20, {19, 20, 21}}}})->interval->low) << "seeded";
}

TEST(RatioOf, ARateThatIsNoneGivesNone) {
  EXPECT_FALSE(ratio_of({}));
  EXPECT_FALSE(ratio_of({pair_of(1, 2), pair_of(0, 2)}));
  EXPECT_FALSE(ratio_of({pair_of(1, 0)}));
}

TEST(SpeedChange, IsSaidOnlyWhereTheIntervalTells) {
  const auto change = [](double low, double high) { return judge_speed(Ratio{1, Interval{low, high}}, 0.05); };
  EXPECT_EQ(judge_speed(std::nullopt, 0.05), SpeedChange::kUnknown);
  EXPECT_EQ(judge_speed(Ratio{2, std::nullopt}, 0.05), SpeedChange::kUnknown);
  EXPECT_EQ(change(0.9, 1.1), SpeedChange::kNoDifference);
  EXPECT_EQ(change(1.1, 1.2), SpeedChange::kFaster);
  EXPECT_EQ(change(0.9, 0.97), SpeedChange::kSlower) << "not all of it lies beyond the tolerance";
  EXPECT_EQ(change(0.8, 0.9), SpeedChange::kRegression);
}

TEST(Turns, EveryOtherPairIsTurnedRound) {
  EXPECT_EQ(turns_of_pair(0), (std::array{Side::kA, Side::kB}));
  EXPECT_EQ(turns_of_pair(1), (std::array{Side::kB, Side::kA}));
  EXPECT_EQ(turns_of_pair(2), turns_of_pair(0));
}

}  // namespace
}  // namespace unidle::experiment
