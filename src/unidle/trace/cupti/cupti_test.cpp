#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>
#include <utility>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/trace/cupti/aggregate.h"
#include "unidle/trace/cupti/session.h"

#if __has_include(<cupti_activity.h>)
#include <cupti_activity.h>
#include <cupti_result.h>
#include <cupti_version.h>
#define UNIDLE_HAS_CUPTI_HEADER 1
#endif

namespace unidle::trace::cupti {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class AggregateTest : public testing::Test {
 protected:
  std::vector<DeviceSecond> seconds_;
  Aggregate aggregate_{[this](const DeviceSecond& second) { seconds_.push_back(second); }};
};

TEST_F(AggregateTest, BusyIsTheUnionSecondBySecond) {
  const std::int64_t begin = 10 * kNsPerSecond;
  aggregate_.kernel(0, begin + 900 * kMs, begin + 1200 * kMs, "ampere_sgemm");  // ends in the next second
  aggregate_.kernel(0, begin + 950 * kMs, begin + 1100 * kMs, "s16816gemm");    // overlaps it
  aggregate_.copy(0, begin + 1300 * kMs, begin + 1400 * kMs, 77);
  aggregate_.copy(1, begin, begin + 10 * kMs, 5);
  EXPECT_TRUE(seconds_.empty());
  aggregate_.finish();
  ASSERT_EQ(seconds_.size(), 3U);
  EXPECT_EQ(seconds_[0].begin_ns, begin);
  EXPECT_EQ(seconds_[0].busy_ns, 100 * kMs);
  EXPECT_EQ(seconds_[0].kernels, 2U);
  EXPECT_NEAR(seconds_[0].matrix_share, 150.0 / 450, 1e-9);
  EXPECT_EQ(seconds_[1].device, 1U);
  EXPECT_TRUE(std::isnan(seconds_[1].matrix_share));  // no kernel: not zero
  EXPECT_EQ(seconds_[2].busy_ns, 300 * kMs);
  EXPECT_EQ(seconds_[2].copied_bytes, 77U);
}

TEST_F(AggregateTest, SecondsAreHandedOverAndLateRecordsCounted) {
  for (std::int64_t second = 10; second < 23; ++second) {
    aggregate_.kernel(0, second * kNsPerSecond, second * kNsPerSecond + kMs, "a");
  }
  ASSERT_EQ(seconds_.size(), 2U);  // 10 and 11
  EXPECT_EQ(aggregate_.late(), 0U);
  aggregate_.kernel(0, 11 * kNsPerSecond + 5, 11 * kNsPerSecond + 9, "a");
  EXPECT_EQ(aggregate_.late(), 1U);
  aggregate_.kernel(0, 12 * kNsPerSecond + 5 * kMs, 12 * kNsPerSecond + 6 * kMs, "a");
  aggregate_.finish();
  ASSERT_EQ(seconds_.size(), 13U);
  EXPECT_EQ(seconds_[2].kernels, 2U);
}

TEST_F(AggregateTest, RecordsWithoutTimesAreNone) {
  aggregate_.kernel(0, 0, 5, "a");
  aggregate_.kernel(0, 5, 4, "a");
  aggregate_.kernel(0, kNsPerSecond, INT64_MAX, "a");
  aggregate_.finish();
  EXPECT_TRUE(seconds_.empty());
}

class SessionTest : public AggregateTest {
 protected:
  void SetUp() override { ::unsetenv("UNIDLE_MOCK_CUPTI"); }
  void TearDown() override { ::unsetenv("UNIDLE_MOCK_CUPTI"); }
  std::unique_ptr<Session> start(const char* script = nullptr) {
    if (script != nullptr) {
      ::setenv("UNIDLE_MOCK_CUPTI", script, 1);
    }
    return Session::start(UNIDLE_MOCK_CUPTI, aggregate_, why_);
  }
  std::string why_;
};

TEST_F(SessionTest, TakesItsBuffersOnTheRecordsClock) {
  {
    auto session = start();
    ASSERT_TRUE(session) << why_;
    std::string why;
    EXPECT_FALSE(Session::start(UNIDLE_MOCK_CUPTI, aggregate_, why));  // only one session at a time
    session->flush();
    EXPECT_EQ(Session::dropped(), 0U);
  }
  aggregate_.finish();
  ASSERT_EQ(seconds_.size(), 1U);
  EXPECT_EQ(seconds_[0].device, 1U);
  EXPECT_EQ(seconds_[0].busy_ns, 5 * kMs);
  EXPECT_EQ(seconds_[0].kernels, 2U);
  EXPECT_EQ(seconds_[0].copied_bytes, 4096U);
  EXPECT_NEAR(seconds_[0].matrix_share, 0.75, 1e-9);
  // The mock's clock is an hour ahead of ours.
  EXPECT_LT(std::abs(system_clock().now_ns() - seconds_[0].begin_ns), 600 * kNsPerSecond);
}

TEST_F(SessionTest, FollowsAClockThatIsSet) {
  {
    auto session = start("set");
    ASSERT_TRUE(session) << why_;
    session->flush();
  }
  aggregate_.finish();
  ASSERT_EQ(seconds_.size(), 1U);
  EXPECT_LT(std::abs(system_clock().now_ns() - seconds_[0].begin_ns), 600 * kNsPerSecond);
}

/// So few kernels that no buffer is ever full: CUPTI delivers nothing on its own.
TEST_F(SessionTest, TakesWhatBuffersHoldThatAreNotFull) {
  std::promise<DeviceSecond> first;
  bool told = false;
  Aggregate aggregate([&](const DeviceSecond& second) {
    if (!std::exchange(told, true)) {
      first.set_value(second);
    }
  });
  ::setenv("UNIDLE_MOCK_CUPTI", "few", 1);
  const auto session = Session::start(UNIDLE_MOCK_CUPTI, aggregate, why_);
  ASSERT_TRUE(session) << why_;
  auto seen = first.get_future();
  ASSERT_EQ(seen.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(seen.get().kernels, 1U);
}

TEST_F(SessionTest, GivesWayWhereTheSubscriptionIsHeld) {
  EXPECT_FALSE(start("held"));
  EXPECT_THAT(why_, testing::HasSubstr("subscription"));
}

TEST_F(SessionTest, SaysWhatCannotBeRecorded) {
  EXPECT_FALSE(start("kinds"));
  EXPECT_THAT(why_, testing::HasSubstr("kind"));
  EXPECT_TRUE(start("")) << "the one that failed must have let go: " << why_;
}

TEST_F(SessionTest, WithoutALibrary) {
  EXPECT_FALSE(Session::start("/no/such/libcupti.so", aggregate_, why_));
  EXPECT_FALSE(why_.empty());
  EXPECT_FALSE(Session::start("libc.so.6", aggregate_, why_));
  EXPECT_THAT(why_, testing::HasSubstr("cupti"));
}

#ifdef UNIDLE_HAS_CUPTI_HEADER
template <typename Theirs>
void expect_kernel() {
  static_assert(offsetof(Theirs, start) == offsetof(KernelRecord, start));
  static_assert(offsetof(Theirs, end) == offsetof(KernelRecord, end));
  static_assert(offsetof(Theirs, deviceId) == offsetof(KernelRecord, device));
  static_assert(offsetof(Theirs, name) == offsetof(KernelRecord, name));
}
#endif

/// Compares with the header of a real CUPTI, where one is installed.
TEST(CuptiAbi, IsThatOfTheHeader) {
#ifdef UNIDLE_HAS_CUPTI_HEADER
  expect_kernel<CUpti_ActivityKernel4>();
  expect_kernel<CUpti_ActivityKernel9>();
#if CUPTI_API_VERSION >= 130000
  expect_kernel<CUpti_ActivityKernel10>();
#endif
  static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == offsetof(CopyRecord, bytes));
  static_assert(offsetof(CUpti_ActivityMemcpy6, start) == offsetof(CopyRecord, start));
  static_assert(offsetof(CUpti_ActivityMemcpy6, deviceId) == offsetof(CopyRecord, device));
  static_assert(offsetof(CUpti_ActivityMemset4, start) == offsetof(FillRecord, start));
  static_assert(offsetof(CUpti_ActivityMemset4, deviceId) == offsetof(FillRecord, device));
  static_assert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == kConcurrentKernel && CUPTI_ACTIVITY_KIND_MEMCPY == kMemcpy &&
                CUPTI_ACTIVITY_KIND_MEMSET == kMemset && CUPTI_SUCCESS == kSuccess &&
                CUPTI_ACTIVITY_FLAG_FLUSH_FORCED == kForcedFlush && ACTIVITY_RECORD_ALIGNMENT == kAlignment);
#else
  GTEST_SKIP() << "there is no cupti_activity.h";
#endif
}

}  // namespace
}  // namespace unidle::trace::cupti
