#include "unidle/experiment/measurement.h"

#include <gtest/gtest.h>

namespace unidle::experiment {
namespace {

TEST(Measurement, RatesBesideOtherLoadsDoNotCompare) {
  const Measurement quiet{100, std::nullopt};
  const Measurement busy{60, 2};
  EXPECT_FALSE(is_disturbed(quiet));
  EXPECT_TRUE(is_disturbed(busy));
  EXPECT_FALSE(comparable(quiet, busy));
  EXPECT_TRUE(comparable(busy, busy));
  EXPECT_TRUE(comparable(quiet, quiet));
}

}  // namespace
}  // namespace unidle::experiment
