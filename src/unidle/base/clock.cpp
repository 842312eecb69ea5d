#include "unidle/base/clock.h"

#include <fmt/chrono.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

namespace unidle {

namespace {

std::int64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return read_clock(CLOCK_MONOTONIC); }
  std::int64_t wall_ns() const override { return read_clock(CLOCK_REALTIME); }

  bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override {
    std::mutex mutex;
    std::condition_variable_any condition;
    std::unique_lock lock(mutex);
    const auto wait = std::chrono::nanoseconds(deadline_ns - now_ns());
    condition.wait_for(lock, stop, wait, [] { return false; });
    return !stop.stop_requested();
  }
};

std::tm utc(std::int64_t wall_ns) {
  const std::time_t time = wall_ns / kNsPerSecond;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return parts;
}

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

std::string format_utc(std::int64_t wall_ns) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc(wall_ns)); }

std::string format_utc_compact(std::int64_t wall_ns) { return fmt::format("{:%Y%m%d-%H%M%S}", utc(wall_ns)); }

std::optional<std::int64_t> parse_utc(const std::string& text, const char* form) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), form, &parts);
  if (end == nullptr || *end != '\0') {
    return std::nullopt;
  }
  // strptime() accepts one digit for two, and days that do not exist in the month; both format differently.
  std::int64_t wall_ns = 0;
  if (__builtin_mul_overflow(::timegm(&parts), kNsPerSecond, &wall_ns)) {
    return std::nullopt;  // after 2262
  }
  const std::tm same = utc(wall_ns);
  std::array<char, 64> written{};
  const std::size_t length = std::strftime(written.data(), written.size(), form, &same);
  return std::string_view(written.data(), length) == text ? std::optional(wall_ns) : std::nullopt;
}

}  // namespace unidle
