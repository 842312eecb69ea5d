#include "unidle/tune/parity.h"

#include <gtest/gtest.h>

#include <limits>

namespace unidle::tune {
namespace {

TrialResult with(std::optional<double> loss, std::map<std::string, double> metrics = {}) {
  TrialResult result;
  result.ok = true;
  result.loss = loss;
  result.metrics = std::move(metrics);
  return result;
}

const Settings kExact = {{"loader.workers", "2"}};
const Settings kNumeric = {{"precision.amp", "bf16"}};

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

TEST(Parity, WhatIsNotReportedIsNotCompared) {
  EXPECT_TRUE(check_parity(with({}), with(7.0), kExact).held);
  EXPECT_TRUE(check_parity(with(1.0, {{"psnr", 25.0}}), with(1.0), kExact).held);
}

}  // namespace
}  // namespace unidle::tune
