#include "unidle/tune/search/trial_log.h"

#include <gmock/gmock.h>

#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune {
namespace {

using testing::at_rate;
using ::testing::ElementsAre;
using testing::FakeRunner;

TEST(TrialLog, NumbersWhatIsAddedInThatOrder) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings&) { return at_rate(100); });
  std::vector<int> told;
  TrialLog log(runner, {}, {}, [&](const LoggedTrial& trial) { told.push_back(trial.index); });
  LoggedTrial first = log.measure({}, "step", 600);
  LoggedTrial second = log.measure({}, "again", 600);
  log.add(std::move(second));
  log.add(std::move(first));
  EXPECT_THAT(told, ElementsAre(1, 2));
  EXPECT_EQ(log.trials()[0].stage, "again");
}

TEST(TrialLog, RepeatingAndVerifyingIsNotSearching) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings&) { return at_rate(100); });
  TrialLog log(runner, {}, {});
  for (const char* stage : {"baseline", "step", "again", "reference", "verify-baseline", "verify-winner", "removal"}) {
    log.measure({}, stage, 600);
  }
  EXPECT_EQ(log.searched(), 3);
  EXPECT_EQ(log.measured(), 7);
  EXPECT_EQ(log.runs(), 7);
}

TEST(TrialLog, NoiseIsLargerWhereOthersUseTheCpusDuringMoreThanAThird) {
  unidle::testing::FakeClock clock;
  double others = 2;
  FakeRunner runner(clock, [&](const knobs::Settings&) {
    TrialResult result = at_rate(100);
    result.others_cpus = others;
    return result;
  });
  TrialLog log(runner, {}, {0.03, 0.08});
  EXPECT_EQ(log.noise(), 0.03);
  log.measure({}, "step", 600);
  EXPECT_TRUE(log.last_was_disturbed());
  EXPECT_EQ(log.noise(), 0.08);
  others = 0;
  log.measure({}, "step", 600);
  EXPECT_FALSE(log.last_was_disturbed());
  EXPECT_EQ(log.noise(), 0.08);
  log.measure({}, "step", 600);
  EXPECT_EQ(log.disturbed_runs(), 1);
  EXPECT_EQ(log.noise(), 0.03) << "one of three";
}

TEST(TrialLog, WhatRanWhileItWasStoppedIsNoMeasurement) {
  unidle::testing::FakeClock clock;
  std::stop_source stop;
  FakeRunner runner(clock, [](const knobs::Settings&) { return at_rate(100); });
  runner.before = [&](int) { stop.request_stop(); };
  TrialLog log(runner, stop.get_token(), {});
  EXPECT_TRUE(log.measure({}, "step", 600).result.interrupted);
  EXPECT_TRUE(log.stopped());
}

TEST(TrialLog, ARunnerThatCannotArrangeTheLongestSamplesRunsNothing) {
  unidle::testing::FakeClock clock;
  FakeRunner runner(clock, [](const knobs::Settings&) { return at_rate(100); });
  TrialLog log(runner, {}, {});
  EXPECT_FALSE(log.measure_longest({}, 600));
  EXPECT_EQ(log.runs(), 0);
}

}  // namespace
}  // namespace unidle::tune
