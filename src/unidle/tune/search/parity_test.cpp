#include "unidle/tune/search/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {
namespace {

TrialResult with(std::optional<double> loss, std::map<std::string, double> metrics = {}) {
  TrialResult result;
  result.ok = true;
  result.loss = loss;
  result.metrics = std::move(metrics);
  return result;
}

const knobs::Settings kExact = {{"loader.workers", "2"}};
const knobs::Settings kNumeric = {{"precision.amp", "bf16"}};

TEST(Parity, ExactChangesMustKeepTheLossBothWays) {
  EXPECT_TRUE(check_parity(with(1.0), with(1.01), kExact).held);
  EXPECT_FALSE(check_parity(with(1.0), with(1.04), kExact).held);
  EXPECT_FALSE(check_parity(with(1.0), with(0.9), kExact).held);
}

TEST(Parity, NumericChangesMayOnlyNotGetWorse) {
  EXPECT_TRUE(check_parity(with(1.0), with(1.04), kNumeric).held);
  EXPECT_TRUE(check_parity(with(1.0), with(0.8), kNumeric).held);
  EXPECT_FALSE(check_parity(with(1.0), with(1.06), kNumeric).held);
}

TEST(Parity, NotANumberIsNeverParity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_parity(with(1.0), with(nan), kNumeric).held);
  EXPECT_FALSE(check_parity(with(1.0, {{"psnr", 30}}), with(1.0, {{"psnr", nan}}), kExact).held);
  EXPECT_FALSE(check_parity(with(1.0, {{"mae", 3}}), with(1.0, {{"mae", nan}}), kExact).held);
}

TEST(Parity, MetricsKnowTheirDirection) {
  EXPECT_TRUE(check_parity(with({}, {{"psnr", 25.0}}), with({}, {{"psnr", 24.91}}), kNumeric).held);
  EXPECT_FALSE(check_parity(with({}, {{"psnr", 25.0}}), with({}, {{"psnr", 24.85}}), kNumeric).held);
  EXPECT_TRUE(check_parity(with({}, {{"psnr", 25.0}}), with({}, {{"psnr", 26.0}}), kNumeric).held);
  EXPECT_FALSE(check_parity(with({}, {{"mae", 1.0}}), with({}, {{"mae", 1.1}}), kNumeric).held);
  EXPECT_FALSE(check_parity(with({}, {{"auc", 0.8}}), with({}, {{"auc", 0.7}}), kNumeric).held);
}

TEST(Parity, RunsOfTheProgramItselfTellHowFarChanceGoes) {
  const std::vector<TrialResult> repeats = {with(1.0, {{"psnr", 25.0}, {"acc", 0.80}}),
                                            with(1.08, {{"psnr", 25.6}, {"acc", 0.86}})};
  EXPECT_FALSE(agree(repeats));
  EXPECT_TRUE(agree({repeats.front(), repeats.front()}));
  const Spread spread = spread_of(repeats);
  EXPECT_NEAR(spread.loss, 0.08 / std::sqrt(2.0), 1e-12);
  const Spread single = spread.of_difference(1, 1);
  EXPECT_NEAR(single.loss, 0.08, 1e-12) << "of two runs, what was seen of two runs";
  EXPECT_FALSE(check_parity(with(1.0), with(1.2), kExact).held);
  EXPECT_TRUE(check_parity(with(1.0), with(1.2), kExact, {}, single).held);
  EXPECT_FALSE(check_parity(with(1.0), with(1.4), kExact, {}, single).held);
  EXPECT_FALSE(check_parity(with(1.0), with(1.2), kExact, {}, spread.of_difference(16, 16)).held);
  EXPECT_TRUE(check_parity(with(1.0, {{"psnr", 25.0}}), with(1.0, {{"psnr", 24.0}}), kExact, {}, single).held);
  EXPECT_FALSE(check_parity(with(1.0, {{"psnr", 25.0}}), with(1.0, {{"psnr", 22.0}}), kExact, {}, single).held);
  EXPECT_TRUE(check_parity(with(1.0, {{"acc", 0.8}}), with(1.0, {{"acc", 0.7}}), kExact, {}, single).held);
}

TEST(Parity, OneRunTellsNothingOfChance) {
  EXPECT_EQ(spread_of({with(1.0)}).loss, 0);
  EXPECT_EQ(spread_of({}).loss, 0);
  EXPECT_EQ(spread_of({with(1.0), with(std::nullopt)}).loss, 0);
}

TEST(Parity, WhatIsNotReportedIsNotCompared) {
  EXPECT_TRUE(check_parity(with({}), with(7.0), kExact).held);
  EXPECT_TRUE(check_parity(with(1.0, {{"psnr", 25.0}}), with(1.0), kExact).held);
}

std::map<long long, double> losses_around(double level, double swing) {
  std::map<long long, double> found;
  for (int i = 0; i < 40; ++i) {
    found[i * 4] = level + (i % 2 == 0 ? swing : -swing);
  }
  return found;
}

TEST(Parity, LossesOfStepsThatDifferByChanceAreNoBreach) {
  CommonLosses common;
  const auto first = common.read(losses_around(1.0, 0.4));
  const auto same = common.read(losses_around(1.0, 0.4));
  const auto other = common.read(losses_around(1.05, -0.4));
  const auto shifted = common.read(losses_around(1.05, 0.4));
  ASSERT_TRUE(first && same && other && shifted);
  TrialResult before;
  before.loss = first->value;
  const auto parity_of = [&](const LossReading& reading) {
    TrialResult after;
    after.loss = reading.value;
    after.loss_error = reading.error;
    return check_parity(before, after, {{"loader.workers", "2"}}).held;
  };
  EXPECT_TRUE(parity_of(*same));
  EXPECT_TRUE(parity_of(*other)) << "random samples in another order";
  EXPECT_FALSE(parity_of(*shifted)) << "every single step is worse: that is no chance";
}

}  // namespace
}  // namespace unidle::tune
