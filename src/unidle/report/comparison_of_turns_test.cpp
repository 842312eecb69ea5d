#include "unidle/report/comparison.h"

#include <gmock/gmock.h>

#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

using ::testing::HasSubstr;
using testing::Script;
using testing::scripted_run;

using Runs = std::vector<RunData>;

Script at(double compute_ms, std::uint64_t seed) {
  Script script;
  script.compute_ms = compute_ms;
  script.seed = seed;
  return script;
}

TEST(ComparisonOfTurns, ADriftingMachineIsNoDifference) {
  Runs a;
  Runs b;
  // Both sides of each pair are a tenth slower than in the pair before.
  for (int pair = 0; pair < 5; ++pair) {
    const double ms = 50 * (1 + 0.1 * pair);
    a.push_back(scripted_run(at(ms, 10 + pair)));
    b.push_back(scripted_run(at(ms, 20 + pair)));
  }
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.training, experiment::SpeedChange::kNoDifference);
  EXPECT_EQ(c.pairs.size(), 5u);
  EXPECT_NEAR(c.training_ratio->value, 1, 0.02);
  EXPECT_FALSE(c.regression());
}

TEST(ComparisonOfTurns, ASlowerConfigurationIsARegression) {
  Runs a;
  Runs b;
  for (int pair = 0; pair < 3; ++pair) {
    a.push_back(scripted_run(at(50, 10 + pair)));
    b.push_back(scripted_run(at(100, 20 + pair)));
  }
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.training, experiment::SpeedChange::kRegression);
  EXPECT_TRUE(c.regression());
  EXPECT_EQ(to_json(c)["pairs"].size(), 3u);
  EXPECT_THAT(to_text(c, 100, false), HasSubstr("3 runs of each"));
}

TEST(ComparisonOfTurns, SayHowManyRunsWereDisturbed) {
  Runs a;
  Runs b;
  for (int pair = 0; pair < 3; ++pair) {
    a.push_back(scripted_run(at(50, 10 + pair)));
    Script script = at(50, 20 + pair);
    script.others_cores = pair == 1 ? 0.02 : 2;
    b.push_back(scripted_run(script));
  }
  EXPECT_THAT(compare(a, b).notes, ::testing::Contains(HasSubstr("Other processes used the CPUs during 2 of 6 runs")));
}

TEST(ComparisonOfTurns, OnePairIsAnOrdinaryComparison) {
  const Comparison c = compare(scripted_run(at(50, 1)), scripted_run(at(50, 2)));
  EXPECT_TRUE(c.pairs.empty());
  EXPECT_TRUE(to_json(c)["pairs"].is_null());
}

TEST(ComparisonOfTurns, WhatAllRunsLearnedIsCompared) {
  Runs a;
  Runs b;
  for (int pair = 0; pair < 3; ++pair) {
    a.push_back(scripted_run(at(50, 10 + pair)));
    Script script = at(50, 20 + pair);
    script.loss_factor = pair == 1 ? 1.6 : 1.02;  // one run among three that went wrong
    b.push_back(scripted_run(script));
  }
  EXPECT_FALSE(compare(a[0], b[0]).regression());
  EXPECT_EQ(compare(a, b).learning.measures.front().verdict, experiment::Verdict::kWorse);
}

TEST(Summary, EnergyNeedsADeviceThatTellsIt) {
  RunData run = scripted_run(at(50, 1));
  std::erase_if(run.series, [](const auto& series) { return series.first.name == record::series::kGpuPower; });
  EXPECT_FALSE(summarise(run).energy_per_sample_j);
  record::Series power;
  power.name = record::series::kGpuPower;
  power.subject = "gpu0";
  const account::Timeline timeline = account::make_timeline(run);
  std::vector<record::Point> watts;
  for (std::int64_t t_ns = timeline.begin_ns; t_ns < timeline.end_ns; t_ns += 100'000'000) {
    watts.push_back({t_ns, 200});
  }
  run.series.push_back({power, watts});
  const Summary summary = summarise(run);
  ASSERT_TRUE(summary.energy_per_sample_j && summary.throughput.training);
  EXPECT_NEAR(*summary.energy_per_sample_j, 200 / summary.throughput.training->value, 1e-9);
}

}  // namespace
}  // namespace unidle::report
