#include "unidle/tune/trials/trial_record.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

TEST(TrialRecord, SaysWhatTheAccountSays) {
  account::RunData run;
  for (int i = 0; i < 40; ++i) {
    record::Step step;
    step.process = 1;
    step.t_ns = i * 1'000'000'000LL;
    step.duration_ns = 700'000'000;
    step.samples = 4;
    step.loss = 1.0 / (i + 1);
    step.samples_before = 4 * i;
    run.steps.push_back(step);
    run.spans.push_back({"validate", 1, step.t_ns + 700'000'000, 200'000'000, 0});
  }
  account::tidy(run);
  const account::Account account = account::account_of(run);
  experiment::LossScale scale;
  TrialResult result;
  ASSERT_TRUE(read_trial(run, scale, result));
  EXPECT_EQ(result.rate, account.rates.total) << "validation is counted in";
  EXPECT_EQ(result.step_rate, account.rates.training);
  EXPECT_EQ(result.losses.size(), 40U);
  EXPECT_EQ(result.losses.at(156), 1.0 / 40);
  run.steps.resize(7);
  EXPECT_FALSE(read_trial(run, scale, result));
  EXPECT_EQ(result.problem, "only 7 training steps were seen in 0 s");
}

}  // namespace
}  // namespace unidle::tune
