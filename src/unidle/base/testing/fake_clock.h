#pragma once

#include <atomic>

#include "unidle/base/clock.h"

namespace unidle::testing {

/// A clock that moves only when set, or when somebody sleeps: sleeping returns at once and moves it forward.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(std::int64_t start_ns = kNsPerSecond) : now_ns_(start_ns) {}

  std::int64_t now_ns() const override { return now_ns_; }
  std::int64_t wall_ns() const override { return kWallOffset + now_ns_; }
  bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override;
  void advance(std::int64_t ns) { now_ns_ += ns; }

 private:
  static constexpr std::int64_t kWallOffset = 1'700'000'000 * kNsPerSecond;
  std::atomic<std::int64_t> now_ns_;
};

}  // namespace unidle::testing
