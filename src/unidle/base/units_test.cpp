#include "unidle/base/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "unidle/base/clock.h"

namespace unidle {
namespace {

TEST(Units, ReadAsPeopleWriteThem) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(3ULL << 40), "3.0 TiB");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(75), "1 min 15 s");
  EXPECT_EQ(format_seconds(7260), "2 h 1 min");
  EXPECT_EQ(format_seconds(5e-6), "5.0 us");
  EXPECT_EQ(format_flops(8622552), "8.62 MFLOP");
  EXPECT_EQ(format_flops(2e15), "2 PFLOP");
  EXPECT_EQ(format_share(0.624), "62 %");
  EXPECT_EQ(format_share(0.021), "2.1 %");
  EXPECT_EQ(format_number(1234.5), "1234");
  EXPECT_EQ(format_number(12.345), "12.3");
  EXPECT_EQ(format_number(0.00002), "2e-05");
}

TEST(Units, OneIsSingular) {
  EXPECT_EQ(format_count(0, "run"), "0 runs");
  EXPECT_EQ(format_count(1, "run"), "1 run");
  EXPECT_EQ(format_count(12, "run"), "12 runs");
}

TEST(Units, TakesTimesAsPeopleWriteThem) {
  EXPECT_EQ(parse_seconds("90"), 90);
  EXPECT_EQ(parse_seconds("0.5s"), 0.5);
  EXPECT_EQ(parse_seconds("10m"), 600);
  EXPECT_EQ(parse_seconds("7d"), 604800);
  EXPECT_EQ(parse_seconds("10min"), 600);
  EXPECT_EQ(parse_seconds("1.5h"), 5400);
  for (const char* none :
       {"", "s", "0", "0h", "-1s", "ten", "1w", "1 h", "1h30m", "1.2.3s", "inf", "infh", "nan", "1e9999"}) {
    EXPECT_EQ(parse_seconds(none), std::nullopt) << none;
  }
}

TEST(Units, SecondsOfAnySizeCanBeAddedToATime) {
  EXPECT_EQ(nanoseconds(1.5), 1'500'000'000);
  EXPECT_EQ(nanoseconds(-2), -2'000'000'000);
  EXPECT_EQ(nanoseconds(std::numeric_limits<double>::quiet_NaN()), 0);
  const std::int64_t now = system_clock().wall_ns();
  for (const double endless : {1e10, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_GT(now + nanoseconds(endless), now);
    EXPECT_LT(now + nanoseconds(-endless), now);
  }
}

}  // namespace
}  // namespace unidle
