#include "unidle/report/scaling.h"

#include <gmock/gmock.h>

#include "unidle/report/page/ranks.h"
#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

using ::testing::HasSubstr;
using testing::Script;
using testing::scripted_run;

/// A run of `ranks` equal processes; each waits `wait_ms` of its 50 ms of computing for the gradients of the others.
RunData ranks_of(int ranks, double wait_ms, double compute_ms = 50, int batch = 4) {
  Script script;
  script.noise = 0.02;
  script.compute_ms = compute_ms;
  script.batch = batch;
  script.validate_every = 0;
  RunData run = scripted_run(script);
  const std::vector<record::Step> steps = run.steps;
  const std::int64_t first = steps.front().process;
  for (int rank = 0; rank < ranks && ranks > 1; ++rank) {
    const std::int64_t process = first + rank;
    run.notes.push_back(
        {1, process, {{"type", "rank"}, {"rank", rank}, {"wait_seconds", wait_ms * 1e-3}, {"exchanges_per_step", 1}}});
    for (record::Step step : steps) {
      step.process = process;
      if (rank > 0) {
        run.steps.push_back(step);
      }
    }
  }
  return run;
}

const Translator kEnglish;

TEST(Scaling, TwiceTheRanksAtTheSameStepAreTwiceAsFast) {
  const Comparison c = compare(ranks_of(1, 0), ranks_of(2, 0));
  const auto scaling = scaling_of(c, kEnglish);
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->fewer, 1U);
  EXPECT_EQ(scaling->more, 2U);
  EXPECT_NEAR(scaling->efficiency.value, 1, 0.02);
  EXPECT_EQ(loss_words(*scaling, kEnglish), "");
  EXPECT_THAT(headline(c), HasSubstr("2 ranks train 2.0"));
}

TEST(Scaling, WhatIsLostIsNamed) {
  // 69 ms a step alone; 109 ms with three others, 40 of which are waits.
  const Comparison c = compare(ranks_of(1, 0), ranks_of(4, 40, 90));
  const auto scaling = scaling_of(c, kEnglish);
  ASSERT_TRUE(scaling && scaling->efficiency.interval);
  EXPECT_NEAR(scaling->efficiency.value, 69.0 / 109, 0.03);
  EXPECT_LT(scaling->efficiency.interval->low, scaling->efficiency.value);
  EXPECT_THAT(loss_words(*scaling, kEnglish), HasSubstr("waits for other ranks +10.0 ms a sample"));
  double whole_s = 0;
  for (const RankCost& cost : scaling->costs) {
    whole_s += cost.more_s;
  }
  EXPECT_NEAR(whole_s, 0.109 / 4, 0.002) << "the parts add up to a rank's time per sample";
  EXPECT_THAT(to_text(c, 100, false), HasSubstr("Time of a rank for each sample"));
  EXPECT_NEAR(to_json(c)["scaling"]["efficiency"]["value"].get<double>(), scaling->efficiency.value, 1e-9);
}

TEST(Scaling, FewerRanksAreNoRegression) {
  const Comparison c = compare(ranks_of(4, 0), ranks_of(1, 0));
  EXPECT_FALSE(c.regression());
  const auto scaling = scaling_of(c, kEnglish);
  ASSERT_TRUE(scaling);
  EXPECT_TRUE(scaling->a_has_more);
  EXPECT_NEAR(scaling->efficiency.value, 1, 0.02);
  EXPECT_TRUE(compare(ranks_of(4, 0), ranks_of(4, 0, 90)).regression()) << "equally many ranks are compared as ever";
}

TEST(Scaling, ASmallerShareOfTheBatchIsComparedBySample) {
  const auto scaling = scaling_of(compare(ranks_of(1, 0, 50, 8), ranks_of(2, 0, 50, 4)), kEnglish);
  ASSERT_TRUE(scaling);
  EXPECT_NEAR(scaling->efficiency.value, 0.5, 0.02);
  EXPECT_EQ(scaling->samples_fewer, 8);
  EXPECT_EQ(scaling->samples_more, 4);
}

TEST(Ranks, AreShownOnThePage) {
  const Translator translator;
  const std::string html = ranks_html(account::account_of(ranks_of(2, 10)), translator).markup;
  EXPECT_THAT(html, HasSubstr("rank 1"));
  EXPECT_THAT(html, HasSubstr("waits for other ranks"));
  EXPECT_TRUE(ranks_html(account::account_of(ranks_of(1, 0)), translator).empty());
}

TEST(Scaling, EquallyManyRanksHaveNone) {
  EXPECT_FALSE(scaling_of(compare(ranks_of(2, 0), ranks_of(2, 10)), kEnglish));
  EXPECT_TRUE(to_json(compare(ranks_of(2, 0), ranks_of(2, 10)))["scaling"].is_null());
}

}  // namespace
}  // namespace unidle::report
