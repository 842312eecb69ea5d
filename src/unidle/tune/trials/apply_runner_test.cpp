#include "unidle/tune/trials/apply_runner.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

TEST(ProgramTrials, HaveThirtyStepsAtLeast) {
  EXPECT_EQ(steps_of_trial(0.1, 10), 100);
  EXPECT_EQ(steps_of_trial(5, 10), 30);
  EXPECT_EQ(steps_of_trial(1e-9, 10), 100'000);
  EXPECT_EQ(steps_of_trial(0.1, 6, 50), 150) << "three epochs of 5 s";
  EXPECT_EQ(steps_of_trial(0.1, 6, 500), 60) << "three epochs would take too long";
}

TEST(ProgramTrials, LargerBatchesTakeFewerSteps) {
  ProgramPlan plan;
  plan.steps = 100;
  plan.settings = {{"batch.size", 4}, {"batch.accumulation", 2}};
  EXPECT_EQ(steps_with(plan, {{"loader.workers", 2}}), 100);
  EXPECT_EQ(steps_with(plan, {{"batch.size", 8}, {"batch.accumulation", 1}}), 100);
  EXPECT_EQ(steps_with(plan, {{"batch.size", 8}}), 50);
  EXPECT_EQ(steps_with(plan, {{"batch.size", 400}}), 16);
  EXPECT_EQ(steps_with(plan, {{"batch.size", 1}}), 400);
}

}  // namespace
}  // namespace unidle::tune
