#include "unidle/report/page/step_times.h"

#include <gmock/gmock.h>

#include <numeric>

#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

TEST(StepHistogram, CountsEachStepOnceAndNamesTheTail) {
  account::RunData run = testing::scripted_run(testing::naive_script());
  run.steps[150].duration_ns *= 20;
  account::tidy(run);
  const account::Account account = account::account_of(run);
  const auto histogram = step_histogram(account);
  ASSERT_TRUE(histogram);
  const double counted = std::accumulate(histogram->counts.begin(), histogram->counts.end(), 0.0);
  EXPECT_DOUBLE_EQ(counted + static_cast<double>(histogram->longer),
                   static_cast<double>(account.timeline.counted().size()));
  EXPECT_GE(histogram->longer, 1U);
  EXPECT_GT(histogram->longest_s, 5 * histogram->median_s);
  EXPECT_GT(histogram->slowest_share, 0.05);
  EXPECT_LT(histogram->median_s, histogram->p95_s);
  const Html html = step_times({&run, account, "run1"}, {});
  EXPECT_THAT(html.markup, ::testing::HasSubstr("longer, up to")) << "a column of its own";
}

TEST(StepHistogram, FewStepsHaveNone) {
  testing::Script script;
  script.steps = 5;
  EXPECT_FALSE(step_histogram(account::account_of(testing::scripted_run(script))));
}

}  // namespace
}  // namespace unidle::report
