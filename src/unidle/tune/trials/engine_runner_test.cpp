#include "unidle/tune/trials/engine_runner.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

TEST(Plan, ShortEpochsAreMeasuredWhole) {
  const TrialPlan plan = plan_trials({.rate = 40, .step_samples = 4, .epoch_samples = 48.0}, 4);
  EXPECT_TRUE(plan.whole_epochs);
  EXPECT_EQ(plan.warmup_samples, 49);  // one epoch and a sample: excludes its validation too
  EXPECT_EQ(plan.samples, 144);
  EXPECT_EQ(plan.samples % 4, 0);
}

TEST(Plan, LongEpochsAreNot) {
  const TrialPlan plan = plan_trials({.rate = 40, .step_samples = 16, .epoch_samples = std::nullopt}, 4);
  EXPECT_FALSE(plan.whole_epochs);
  EXPECT_EQ(plan.samples, 160);
  EXPECT_EQ(plan.warmup_samples, 16);
  const TrialPlan slow = plan_trials({.rate = 0.5, .step_samples = 16, .epoch_samples = 1000.0}, 4);
  EXPECT_FALSE(slow.whole_epochs);
  EXPECT_EQ(slow.samples, 64);
}

TEST(Plan, LargerBatchesGetWholeStepsAndSomeOfThem) {
  const TrialPlan plan = {.samples = 160, .warmup_samples = 16, .epoch_samples = std::nullopt, .expected_s = 4};
  EXPECT_EQ(in_steps_of(plan, 32).samples, 160);
  EXPECT_EQ(in_steps_of(plan, 48).samples, 192) << "the engine would leave out what is no whole step";
  const TrialPlan large = in_steps_of(plan, 512);
  EXPECT_EQ(large.samples, 3 * 512) << "the engine would take the batch smaller";
  EXPECT_EQ(large.warmup_samples, 16);
  EXPECT_NEAR(large.expected_s, 4 * 1536 / 160.0, 1e-9);
}

}  // namespace
}  // namespace unidle::tune
