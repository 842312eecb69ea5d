#include "unidle/experiment/spread.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unidle::experiment {
namespace {

Learned at(double loss) {
  Learned learned;
  learned.loss = Reading{loss, 0, 0};
  return learned;
}

TEST(Spread, OneRunTellsNothingOfChance) {
  EXPECT_EQ(spread_of({}).loss, 0);
  EXPECT_EQ(spread_of({at(1)}).loss, 0);
  EXPECT_EQ(spread_of({at(1), Learned{}}).loss, 0);
  EXPECT_NEAR(spread_of({at(1), at(1.08)}).loss, 0.08 / std::sqrt(2.0), 1e-12);
}

TEST(Spread, RunsAgreeWhenLossesAndMetricsDo) {
  EXPECT_TRUE(agree({at(1), at(1.00001)}));
  EXPECT_FALSE(agree({at(1), at(1.01)}));
  Learned other = at(1);
  Learned one = at(1);
  one.metrics["psnr"] = Reading{25, 0, 0};
  other.metrics["psnr"] = Reading{26, 0, 0};
  EXPECT_FALSE(agree({one, other}));
}

TEST(Spread, AnAverageNeedsALossOfEachRun) {
  EXPECT_FALSE(averaged({at(1), Learned{}}).loss);
  EXPECT_DOUBLE_EQ(averaged({at(1), at(2)}).loss->value, 1.5);
}

}  // namespace
}  // namespace unidle::experiment
