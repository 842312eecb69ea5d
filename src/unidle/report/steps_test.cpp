#include "unidle/report/steps.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

namespace unidle::report {
namespace {

constexpr std::int64_t kMs = 1'000'000;

record::Step step_at(std::int64_t t_ms, std::int64_t duration_ms, std::int64_t process = 1) {
  record::Step step;
  step.process = process;
  step.t_ns = t_ms * kMs;
  step.duration_ns = duration_ms * kMs;
  step.samples = 4;
  return step;
}

RunData run_of(std::vector<record::Step> steps, std::vector<record::Span> spans = {}) {
  RunData run;
  run.steps = std::move(steps);
  run.spans = std::move(spans);
  tidy(run);
  return run;
}

TEST(Cycles, CountTheGapAfterAStepButNotTheValidationInIt) {
  const RunData run = run_of({step_at(0, 100), step_at(400, 100)}, {{"validate", 1, 150 * kMs, 200 * kMs, 0}});
  const auto all = cycles(run);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NEAR(all[0].wall_s, 0.2, 1e-12);
  EXPECT_NEAR(all[0].parts[kOther], 0.2, 1e-12);
  EXPECT_NEAR(all[1].wall_s, 0.1, 1e-12);
}

TEST(Cycles, OverlappingSpansAreTakenOffOnce) {
  const RunData run = run_of({step_at(0, 100), step_at(1000, 100)},
                             {{"validate", 1, 200 * kMs, 400 * kMs, 0}, {"checkpoint", 1, 300 * kMs, 100 * kMs, 0}});
  EXPECT_NEAR(cycles(run)[0].wall_s, 0.6, 1e-12);
}

TEST(Cycles, PartsAlwaysSumToTheWallTime) {
  record::Step over = step_at(0, 100);
  over.forward_ns = 90 * kMs;
  over.sync_ns = 60 * kMs;  // inside the forward pass
  const auto all = cycles(run_of({over, step_at(100, 50)}));
  for (const Cycle& cycle : all) {
    EXPECT_NEAR(std::accumulate(cycle.parts.begin(), cycle.parts.end(), 0.0), cycle.wall_s, 1e-12);
  }
  EXPECT_EQ(all[0].parts[kOther], 0);
}

TEST(Cycles, WhatWasNotSeenInFullIsDividedAsInTheStepsThatWere) {
  record::Step full = step_at(0, 100);
  full.input_ns = 20 * kMs;
  full.forward_ns = full.backward_ns = 30 * kMs;
  full.optimizer_ns = 20 * kMs;
  record::Step other = step_at(100, 100);
  other.sync_ns = 50 * kMs;
  for (const bool input_known : {true, false}) {
    if (input_known) {
      other.input_ns = 10 * kMs;
    }
    const auto all = cycles(run_of({full, other}));
    const Parts& parts = all[1].parts;
    EXPECT_NEAR(parts[kSync], 0.05, 1e-12);
    EXPECT_NEAR(parts[kInput], 0.01, 1e-12);
    EXPECT_NEAR(parts[kCompute], 0.03, 1e-12);
    EXPECT_NEAR(parts[kOptimizer], 0.01, 1e-12);
    EXPECT_NEAR(parts[kOther], 0, 1e-12);
    EXPECT_NEAR(all[0].parts[kCompute], 0.06, 1e-12);
    other.input_ns.reset();
  }
}

TEST(Phases, SumToTheWallTimeAndStartUpIsWhatPrecedesTheFirstStep) {
  RunData run;
  run.meta["start_ns"] = 0;
  run.meta["end_ns"] = 2000 * kMs;
  run.steps = {step_at(500, 100), step_at(600, 100)};
  run.spans = {{"validate", 1, 700 * kMs, 300 * kMs, 0}};
  tidy(run);
  const Phases p = phases(run, cycles(run));
  EXPECT_NEAR(p.startup, 0.5, 1e-9);
  EXPECT_NEAR(p.train, 0.2, 1e-9);
  EXPECT_NEAR(p.validate, 0.3, 1e-9);
  EXPECT_NEAR(p.other, 1.0, 1e-9);
}

TEST(Tidy, RanksSideBySideGiveTheirSamplesAndOneOfThemTheTime) {
  const RunData run = run_of(
      {step_at(0, 100, 1), step_at(2, 100, 2), step_at(100, 100, 1), step_at(102, 100, 2), step_at(200, 100, 1)});
  EXPECT_EQ(run.steps.size(), 3U);
  EXPECT_NEAR(run.rank_factor, 20.0 / 12.0, 1e-12);
}

TEST(Tidy, ImpossibleTimesAreLeftOutAndCounted) {
  record::Step negative = step_at(0, 100);
  negative.duration_ns = -5;
  record::Step late = step_at(0, 100);
  late.t_ns = std::numeric_limits<std::int64_t>::max();
  const RunData run = run_of({step_at(0, 100), negative, late});
  EXPECT_EQ(run.steps.size(), 1U);
  EXPECT_THAT(run.missing, ::testing::Contains(::testing::HasSubstr("2 rows")));
}

TEST(Tidy, ARecordWithoutAnEndEndsWithTheLastThingSeen) {
  const RunData run = run_of({step_at(0, 100), step_at(100, 150)});
  EXPECT_EQ(run.end_ns, 250 * kMs);
  EXPECT_THAT(run.missing, ::testing::Contains(::testing::HasSubstr("cut off")));
}

TEST(WarmUp, LeavesStepsToCount) {
  EXPECT_EQ(warm_up_steps(0), 0U);
  EXPECT_EQ(warm_up_steps(1), 0U);
  EXPECT_EQ(warm_up_steps(5), 2U);
  EXPECT_EQ(warm_up_steps(50), 3U);
  EXPECT_EQ(warm_up_steps(5000), 20U);
}

}  // namespace
}  // namespace unidle::report
