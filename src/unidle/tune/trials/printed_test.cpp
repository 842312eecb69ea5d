#include "unidle/tune/trials/printed.h"

#include <gtest/gtest.h>

namespace unidle::tune {
namespace {

TEST(Printed, ReadsTheSummaryAfterOtherLines) {
  TrialResult result;
  read_summary(
      "starting\n{\"not\": \"this\"}\n"
      R"({"samples_per_s": 50.5, "end_to_end_samples_per_s": 40, "loss_last": 0.25, "metric": {"psnr": 24.5},)"
      R"( "effective": {"loader.workers": 2, "optimizer.fused": true, "precision.amp": "bf16"}})"
      "\nbye\n",
      true, result);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.rate, 40);
  EXPECT_EQ(result.step_rate, 50.5);
  EXPECT_EQ(result.loss, 0.25);
  EXPECT_EQ(result.metrics.at("psnr"), 24.5);
  EXPECT_EQ(result.effective.at("loader.workers"), "2");
  EXPECT_EQ(result.effective.at("optimizer.fused"), "true");
  EXPECT_EQ(result.effective.at("precision.amp"), "bf16");
}

TEST(Printed, AMissingSummaryIsAProblemNotAZero) {
  for (const char* text : {"", "no document", "{\"samples_per_s\": 0}", "[1, 2]", "{\"samples_per_s\": \"fast\"}"}) {
    TrialResult result;
    read_summary(text, false, result);
    EXPECT_FALSE(result.ok) << text;
    EXPECT_FALSE(result.problem.empty()) << text;
  }
}

}  // namespace
}  // namespace unidle::tune
