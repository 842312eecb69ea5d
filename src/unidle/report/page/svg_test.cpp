#include "unidle/report/page/svg.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

namespace unidle::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHuge = std::numeric_limits<double>::max();

TEST(Scale, IsLinearAndHoldsAtTheEnds) {
  const Scale scale{0, 10, 100, 200};
  EXPECT_DOUBLE_EQ(scale.at(5), 150);
  EXPECT_DOUBLE_EQ(scale.at(-5), 100);
  EXPECT_DOUBLE_EQ(scale.at(50), 200);
}

TEST(Scale, IsAlwaysFinite) {
  for (const double from : {0.0, -kHuge, kNan, 5.0}) {
    for (const double to : {0.0, 1.0, kHuge, kInfinity}) {
      const Scale scale{from, to, 10, 20};
      for (const double value : {0.0, kNan, kInfinity, -kInfinity, kHuge}) {
        EXPECT_GE(scale.at(value), 10) << from << ' ' << to << ' ' << value;
        EXPECT_LE(scale.at(value), 20);
      }
    }
  }
}

TEST(Ticks, AreRoundInsideTheRangeAndFew) {
  EXPECT_THAT(nice_ticks(0, 100, 6), ::testing::ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(nice_ticks(0.2, 1.1, 5),
              ::testing::ElementsAre(::testing::DoubleNear(0.2, 1e-9), ::testing::DoubleNear(0.4, 1e-9),
                                     ::testing::DoubleNear(0.6, 1e-9), ::testing::DoubleNear(0.8, 1e-9),
                                     ::testing::DoubleNear(1.0, 1e-9)));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 12);
  for (int i = 0; i < 2000; ++i) {
    const double low = std::pow(10, exponent(random)) * (i % 2 == 0 ? 1 : -1);
    const double high = low + std::pow(10, exponent(random));
    const auto ticks = nice_ticks(low, high, 6);
    ASSERT_FALSE(ticks.empty());
    ASSERT_LE(ticks.size(), 6U);
    for (const double tick : ticks) {
      EXPECT_GE(tick, low - 1e-6 * (high - low) - 1e-9 * std::abs(low));
      EXPECT_LE(tick, high + 1e-6 * (high - low) + 1e-9 * std::abs(high));
    }
  }
}

TEST(Ticks, OddRangesGiveOneTick) {
  EXPECT_EQ(nice_ticks(1, 1, 6).size(), 1U);
  EXPECT_EQ(nice_ticks(kNan, 1, 6).size(), 1U);
  EXPECT_EQ(nice_ticks(0, kInfinity, 6).size(), 1U);
}

TEST(TickLabel, HasTheDecimalsThatTheStepNeeds) {
  EXPECT_EQ(tick_label(0.5, 0.25), "0.5");
  EXPECT_EQ(tick_label(0.05, 0.01), "0.05");
  EXPECT_EQ(tick_label(200, 50), "200");
  EXPECT_EQ(tick_label(20000, 5000), "20k");
  EXPECT_EQ(tick_label(2.5e6, 5e5), "2.5M");
}

TEST(LineData, NeverHoldsANumberThatIsNone) {
  const Scale scale{0, 10, 0, kUnits};
  const Line line = {{kNan, 1}, {1, kInfinity}, {kHuge, kHuge}, {2, kNan}};
  for (const std::string& data : {line_data(line, scale, scale), area_data(line, scale, scale),
                                  dot_data(line, scale, scale), rect_data(kNan, kInfinity, -5, kNan)}) {
    EXPECT_EQ(data.find("nan"), std::string::npos) << data;
    EXPECT_EQ(data.find("inf"), std::string::npos) << data;
  }
}

TEST(LineData, HasAGapWhereThereIsNoValue) {
  const Scale x{0, 10, 0, 1000};
  const Scale y{0, 10, 1000, 0};
  const Line line = {{0, 5}, {1, 5}, {2, kNan}, {3, 0}, {4, kNan}};
  EXPECT_EQ(line_data(line, x, y), "M0 500L100 500M300 1000h0");
  EXPECT_EQ(area_data(line, x, y), "M0 1000L0 500L100 500V1000zM300 1000L300 1000V1000z");
}

TEST(Picture, EscapesItsWords) {
  const std::string markup = picture("id", "<title>", "<b>", path("line run0", "M0 0", "<i>")).markup;
  EXPECT_EQ(markup.find("<b>"), std::string::npos);
  EXPECT_EQ(markup.find("<i>"), std::string::npos);
  EXPECT_NE(markup.find("&lt;title&gt;"), std::string::npos);
}

}  // namespace
}  // namespace unidle::report
