#include "unidle/diagnose/detail/development.h"

#include <gtest/gtest.h>

namespace unidle::diagnose::detail {
namespace {

TEST(GrowsSteadily, OverTheWholeTimeAndNotInOneJump) {
  EXPECT_TRUE(grows_steadily({1, 2, 3, 4, 5}));
  EXPECT_TRUE(grows_steadily({10, 12, 11.5, 14, 16, 18, 17.5, 20}));
  EXPECT_FALSE(grows_steadily({5, 4, 3, 2, 1}));
  EXPECT_FALSE(grows_steadily({1, 1, 1, 2, 2}));
  EXPECT_FALSE(grows_steadily({1, 2, 3})) << "too few";
}

TEST(GrowsSteadily, AValidationThatTakesMemoryIsOneJump) {
  // In MiB, every 5 s: a network for small pictures that validates after four readings.
  EXPECT_FALSE(grows_steadily({1116, 1222, 1207, 1196, 1399, 1557, 1578, 1591}));
  EXPECT_FALSE(grows_steadily({1222, 1207, 1196, 1399, 1557, 1578, 1591}));
}

}  // namespace
}  // namespace unidle::diagnose::detail
