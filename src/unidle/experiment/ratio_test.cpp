#include "unidle/experiment/ratio.h"

#include <gtest/gtest.h>

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

TEST(RatioOf, OneOutlierDoesNotMoveIt) {
  const auto ratio = ratio_of(
      {pair_of(1, 1.5), pair_of(1, 1.51), pair_of(1, 1.49), pair_of(1, 1.5), pair_of(1, 1.52), pair_of(1, 0.4)});
  EXPECT_GT(ratio->interval->low, 0.9);
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
