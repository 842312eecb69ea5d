#include "unidle/base/clock.h"

#include <gtest/gtest.h>

#include "unidle/base/testing/fake_clock.h"

namespace unidle {
namespace {

TEST(Clock, FormatsUtc) {
  EXPECT_EQ(format_utc(1'769'860'800 * kNsPerSecond), "2026-01-31T12:00:00Z");
  EXPECT_EQ(format_utc_compact(1'769'860'800 * kNsPerSecond), "20260131-120000");
}

TEST(Clock, TheSystemClockMovesForwardAndSleepsAtLeastAsLongAsAsked) {
  Clock& clock = system_clock();
  const std::int64_t before = clock.now_ns();
  EXPECT_TRUE(clock.sleep_until(before + 2 * kNsPerMs, {}));
  EXPECT_GE(clock.now_ns() - before, 2 * kNsPerMs);
}

TEST(Clock, AStopRequestEndsASleep) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(system_clock().sleep_until(system_clock().now_ns() + 3600 * kNsPerSecond, stop.get_token()));
}

TEST(Clock, TheFakeMovesOnlyWhenSlept) {
  testing::FakeClock clock(100);
  EXPECT_EQ(clock.now_ns(), 100);
  EXPECT_TRUE(clock.sleep_until(500, {}));
  EXPECT_EQ(clock.now_ns(), 500);
  EXPECT_TRUE(clock.sleep_until(300, {}));
  EXPECT_EQ(clock.now_ns(), 500);
}

TEST(Clock, ReadsATimeOnlyInItsForm) {
  constexpr const char* kForm = "%Y-%m-%dT%H:%M:%SZ";
  for (const char* text : {"1970-01-01T00:00:00Z", "2026-11-01T12:30:05Z", "2028-02-29T23:59:59Z"}) {
    const auto time = parse_utc(text, kForm);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(format_utc(*time), text);
  }
  EXPECT_EQ(parse_utc("20261101-120000", "%Y%m%d-%H%M%S"), parse_utc("2026-11-01T12", "%Y-%m-%dT%H"));
  for (const char* text : {"", "2026", "2026-2-3T12:30:05Z", "2026-02-31T00:00:00Z", "2026-11-01T24:00:00Z",
                           "2026-11-01T12:30:05Z ", " 2026-11-01T12:30:05Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_utc(text, kForm)) << text;
  }
}

}  // namespace
}  // namespace unidle
