#include "unidle/report/svg.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

namespace unidle::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHuge = std::numeric_limits<double>::max();

TEST(Escape, LeavesNoMarkup) {
  EXPECT_EQ(escape("</script><img onerror=\"x\" a='b'>&"),
            "&lt;/script&gt;&lt;img onerror=&quot;x&quot; a=&#39;b&#39;&gt;&amp;");
}

TEST(Escape, KeepsTextInOtherScriptsAndReplacesWhatIsNoUtf8) {
  EXPECT_EQ(escape("Zürich 東京 🚀"), "Zürich 東京 🚀");
  EXPECT_EQ(escape("a\xFF"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(escape("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // cut off
  EXPECT_EQ(escape("\xC0\xBC"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // an overlong "<"
  EXPECT_EQ(escape("\xED\xA0\x80").find('\xED'), std::string::npos);  // a surrogate
  EXPECT_EQ(escape(std::string("a\0b\x1b[1m", 7)), "a\uFFFDb\uFFFD[1m");
  EXPECT_EQ(escape("a\u202eb"), "a\uFFFDb");  // changes the direction of the following text
}

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

TEST(Svg, NeverWritesANumberThatIsNone) {
  Svg svg(100, 50, "id", "<title>", "text");
  svg.rect(kNan, kInfinity, -5, kNan, "c");
  svg.path({{0, kNan}, {kInfinity, 1}}, "c");
  svg.dot(kNan, 1, 2, "c");
  svg.text(kNan, 1, "middle", "c", "<b>");
  const std::string text = svg.str();
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
  EXPECT_EQ(text.find("<b>"), std::string::npos);
  EXPECT_NE(text.find("&lt;title&gt;"), std::string::npos);
}

}  // namespace
}  // namespace unidle::report
