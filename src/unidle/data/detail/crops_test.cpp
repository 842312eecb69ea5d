#include "unidle/data/detail/crops.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unidle::data::detail {
namespace {

TEST(CropsTest, ARandomPartLiesInThePictureAndKeepsItsBounds) {
  for (const auto& [width, height] : {std::pair{500, 375}, {375, 500}, {1000, 200}, {9, 7}}) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      CounterRandom random{seed};
      const Region part = random_resized_crop(random, width, height, {0.2, 0.8}, {0.5, 2.0});
      ASSERT_GE(part.x, 0);
      ASSERT_GE(part.y, 0);
      ASSERT_GE(part.width, 1);
      ASSERT_GE(part.height, 1);
      ASSERT_LE(part.x + part.width, width);
      ASSERT_LE(part.y + part.height, height);
      if (width > 100) {  // rounding to whole pixels distorts small ones
        const double share = static_cast<double>(part.width) * part.height / (static_cast<double>(width) * height);
        EXPECT_GT(share, 0.19);
        EXPECT_LT(share, 0.81);
        EXPECT_GT(static_cast<double>(part.width) / part.height, 0.48);
        EXPECT_LT(static_cast<double>(part.width) / part.height, 2.1);
      }
    }
  }
}

TEST(CropsTest, APictureWithoutSuchAPartGivesItsMiddle) {
  CounterRandom random{1};
  const Region wide = random_resized_crop(random, 1000, 10, {0.9, 1.0}, {0.75, 4.0 / 3});
  EXPECT_EQ(wide.height, 10);
  EXPECT_EQ(wide.width, 13);
  EXPECT_EQ(wide.x, (1000 - 13) / 2);
  const Region tall = random_resized_crop(random, 10, 1000, {0.9, 1.0}, {0.75, 4.0 / 3});
  EXPECT_EQ(tall.width, 10);
  EXPECT_EQ(tall.height, 13);
  const Region dot = random_resized_crop(random, 1, 1, {0.01, 0.02}, {1, 1});
  EXPECT_EQ(dot.width * dot.height, 1);
}

TEST(CropsTest, TheMiddleRoundsHalvesToTheEvenPixel) {
  const MiddlePart wide = resized_middle(500, 375, 256, 224);
  EXPECT_EQ(wide.width, 341);
  EXPECT_EQ(wide.height, 256);
  EXPECT_EQ(wide.left, 58);  // 58.5
  EXPECT_EQ(wide.top, 16);
  const MiddlePart tall = resized_middle(375, 503, 256, 224);
  EXPECT_EQ(tall.height, 343);
  EXPECT_EQ(tall.top, 60);  // 59.5
}

}  // namespace
}  // namespace unidle::data::detail
