#include "unidle/report/page/search.h"

#include <gmock/gmock.h>

namespace unidle::report {
namespace {

using tune::LoggedTrial;

LoggedTrial trial(const char* stage, knobs::Settings changes, double rate, const char* verdict) {
  LoggedTrial made;
  made.stage = stage;
  made.changes = std::move(changes);
  made.result.ok = true;
  made.result.rate = rate;
  made.verdict = verdict;
  return made;
}

TEST(Gains, EachKeptTrialIsComparedWithTheBestBefore) {
  const auto steps = gains({trial("baseline", {}, 10, "baseline"), trial("step", {{"loader.workers", 2}}, 20, "kept"),
                            trial("step", {{"loader.workers", 4}}, 19, "no gain"),
                            trial("step", {{"loader.workers", 2}, {"precision.amp", "bf16"}}, 30, "kept")});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].what, "loader.workers=2");
  EXPECT_DOUBLE_EQ(steps[0].ratio, 2);
  EXPECT_EQ(steps[1].what, "precision.amp=bf16");
  EXPECT_DOUBLE_EQ(steps[1].before, 20);
  EXPECT_DOUBLE_EQ(steps[1].after, 30);
  EXPECT_FALSE(steps[1].interval);
}

TEST(Gains, TurnsGiveTheRatioAndItsInterval) {
  const knobs::Settings changes = {{"loader.workers", 2}};
  const auto steps = gains({trial("baseline", {}, 10, "baseline"), trial("reference", {}, 8, "turn"),
                            trial("again", changes, 12, "turn"), trial("reference", {}, 8, "turn"),
                            trial("again", changes, 12.2, "turn"), trial("reference", {}, 8, "turn"),
                            trial("again", changes, 12.1, "turn"), trial("step", changes, 30, "kept")});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_NEAR(steps[0].ratio, 1.51, 0.02);
  ASSERT_TRUE(steps[0].interval);
  EXPECT_LT(steps[0].interval->low, 1.51);
  EXPECT_GT(steps[0].interval->high, 1.51);
}

TEST(Gains, TwoTurnsGiveNoInterval) {
  const knobs::Settings changes = {{"loader.workers", 2}};
  const auto steps = gains({trial("baseline", {}, 10, "baseline"), trial("reference", {}, 8, "turn"),
                            trial("again", changes, 12, "turn"), trial("reference", {}, 8, "turn"),
                            trial("again", changes, 16, "turn"), trial("step", changes, 30, "kept")});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_FALSE(steps[0].interval);
}

TEST(Gains, WhatIsLeftOutAgainIsNamed) {
  const auto steps = gains({trial("baseline", {}, 10, "baseline"),
                            trial("step", {{"loader.workers", 2}, {"precision.amp", "bf16"}}, 20, "kept"),
                            trial("drop", {{"loader.workers", 2}}, 20, "reverted")});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1].what, "");
  EXPECT_EQ(steps[1].without, "precision.amp");
}

TEST(Gains, NoneWithoutABaselineOrWithRatesThatAreNone) {
  EXPECT_TRUE(gains({trial("step", {{"loader.workers", 2}}, 20, "kept")}).empty());
  EXPECT_TRUE(
      gains({trial("baseline", {}, 0, "baseline"), trial("step", {{"loader.workers", 2}}, 20, "kept")}).empty());
}

}  // namespace
}  // namespace unidle::report
