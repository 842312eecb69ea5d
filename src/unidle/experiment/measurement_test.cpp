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

TEST(Measurement, OneCpuOfOthersDisturbsASmallRunAndNotALargeOne) {
  const Measurement quiet{100, 0, 16};
  const Measurement daemons{100, 1, 16};
  const Measurement busy{100, 4, 16};
  EXPECT_TRUE(is_disturbed({100, 1, 2}));
  EXPECT_FALSE(is_disturbed(daemons)) << "less than a tenth of what the run uses";
  EXPECT_TRUE(is_disturbed(busy));
  EXPECT_TRUE(comparable(quiet, daemons));
  EXPECT_FALSE(comparable(quiet, busy));
}

}  // namespace
}  // namespace unidle::experiment
