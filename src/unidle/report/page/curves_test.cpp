#include "unidle/report/page/curves.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "unidle/report/testing/scripted_run.h"

namespace unidle::report {
namespace {

using testing::naive_script;
using testing::Script;
using testing::scripted_run;

TEST(ThroughputLine, DoesNotFallWhereTheRunValidates) {
  Script script = naive_script();
  script.noise = 0;
  const account::RunData run = scripted_run(script);
  const Shown shown{&run, account::account_of(run), "run1"};
  const Line line = throughput_line(shown, shown.account.timeline.wall_s(), 1);
  const double mean = *shown.account.rates.training;
  std::size_t trained = 0;
  std::size_t gaps = 0;
  for (const auto& [at, rate] : line) {
    if (std::isnan(rate)) {
      ++gaps;
    } else if (at > script.startup_s + 3) {  // the first steps are slow
      ++trained;
      EXPECT_NEAR(rate, mean, 0.4 * mean) << at;
    }
  }
  EXPECT_GT(trained, 40U);
  EXPECT_GT(gaps, 4U);  // start-up and validations
}

TEST(ThroughputLine, IsEmptyWithoutSteps) {
  const account::RunData run;
  EXPECT_TRUE(throughput_line({&run, account::account_of(run), ""}, 10, 1).empty());
}

TEST(Thinned, KeepsTheMeanOfEachInterval) {
  Line line;
  for (int i = 0; i < 1000; ++i) {
    line.emplace_back(i, i % 2);
  }
  const Line thin = thinned(line, 100);
  EXPECT_LE(thin.size(), 101U);
  EXPECT_NEAR(thin[10].second, 0.5, 0.06);
}

}  // namespace
}  // namespace unidle::report
