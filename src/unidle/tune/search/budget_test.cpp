#include "unidle/tune/search/budget.h"

#include <gtest/gtest.h>

#include "unidle/base/testing/fake_clock.h"

namespace unidle::tune {
namespace {

void pass(unidle::testing::FakeClock& clock, double seconds) {
  clock.advance(static_cast<std::int64_t>(seconds * static_cast<double>(kNsPerSecond)));
}

TEST(Budget, KeepsBackTheTimeOfTheLeastVerification) {
  unidle::testing::FakeClock clock;
  Budget budget(clock, 100, 12);
  budget.expect(10, 5, kLeastPairs);  // three pairs: 45 s
  EXPECT_EQ(budget.pair_s(), 15);
  EXPECT_TRUE(budget.allows_run());
  pass(clock, 50);
  EXPECT_TRUE(budget.allows_run()) << "50 + 5 + 45";
  pass(clock, 1);
  EXPECT_FALSE(budget.allows_run());
  EXPECT_FALSE(budget.allows_trial(0, 0));
  EXPECT_TRUE(budget.allows_s(49)) << "of what verification itself takes nothing is kept back";
  EXPECT_FALSE(budget.allows_s(50));
  EXPECT_NEAR(budget.elapsed_s(), 51, 1e-9);
}

TEST(Budget, TellsWhichOneWouldHaveDone) {
  unidle::testing::FakeClock clock;
  Budget budget(clock, 45, 12);
  pass(clock, 10);
  budget.expect(10, 10, kLeastPairs);
  EXPECT_FALSE(budget.allows_run());
  EXPECT_EQ(budget.kept_back_s(), 60);
  Budget enough(clock, budget.needed_s(), 12);
  pass(clock, 10);
  enough.expect(10, 10, kLeastPairs);
  EXPECT_TRUE(enough.allows_run());
}

TEST(Budget, KeepsTrialsForLater) {
  unidle::testing::FakeClock clock;
  const Budget budget(clock, 100, 12);
  EXPECT_TRUE(budget.allows_trial(11, 0));
  EXPECT_FALSE(budget.allows_trial(12, 0));
  EXPECT_TRUE(budget.allows_trial(6, 5));
  EXPECT_FALSE(budget.allows_trial(7, 5));
}

TEST(Budget, EndsRunsATenthAfterItsEnd) {
  unidle::testing::FakeClock clock;
  Budget budget(clock, 100, 12);
  budget.expect(10, 10, kLeastFreshPairs);
  EXPECT_NEAR(budget.limit_s(), 110, 1e-9);
  EXPECT_NEAR(budget.limit_of_trial_s(), 60, 1e-9) << "40 s are kept back";
  EXPECT_EQ(budget.runs_left(), 6);
  pass(clock, 55);
  EXPECT_NEAR(budget.limit_of_trial_s(), 15, 1e-9) << "half as long again as the best";
  EXPECT_EQ(budget.runs_left(), 0);
  pass(clock, 50);
  EXPECT_NEAR(budget.limit_of_trial_s(), 5, 1e-9);
  pass(clock, 50);
  EXPECT_GT(budget.limit_s(), 0);
}

TEST(Budget, BeginsWhenItIsMade) {
  unidle::testing::FakeClock clock;
  pass(clock, 1000);
  const Budget budget(clock, 10, 1);
  EXPECT_EQ(budget.elapsed_s(), 0);
  EXPECT_TRUE(budget.allows_s(10));
}

}  // namespace
}  // namespace unidle::tune
