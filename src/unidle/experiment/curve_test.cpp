#include "unidle/experiment/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace unidle::experiment {
namespace {

TEST(Curve, IsSortedAndFinite) {
  const Curve curve = curve_of({{8, 2}, {4, 1}, {12, std::nan("")}, {16, std::numeric_limits<double>::infinity()}});
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve.front().samples, 4);
  EXPECT_EQ(value_at(curve, 6), 1.5);
  EXPECT_EQ(value_at(curve, 0), 1) << "held at the ends";
  EXPECT_EQ(value_at(curve, 100), 2);
  EXPECT_EQ(between(curve, 5, 8).size(), 1u);
}

TEST(Curve, SmoothingKeepsALevelAndTakesTheNoise) {
  Curve curve;
  for (int i = 0; i < 100; ++i) {
    curve.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  }
  EXPECT_NEAR(smooth(curve, 20)[50].value, 2, 0.1);
}

TEST(Curve, NoiseIsThatBesideTheNeighbours) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> unit;
  Curve curve;
  for (int i = 0; i < 400; ++i) {
    curve.push_back({static_cast<double>(i), 5 + std::exp(-i / 20.0) + 0.1 * unit(random)});
  }
  EXPECT_NEAR(noise(curve).value(), 0.1, 0.02);
  EXPECT_FALSE(noise(between(curve, 0, 3)));
}

}  // namespace
}  // namespace unidle::experiment
