// Time as an interface, so that tests can fake waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace unidle {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kNsPerMs = 1'000'000;

/// Thread-safe. All record timestamps are `now_ns()` of the system clock below: CLOCK_MONOTONIC, which is the same in
/// all processes of the machine.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic nanoseconds.
  virtual std::int64_t now_ns() const = 0;
  /// Nanoseconds since the Unix epoch, UTC.
  virtual std::int64_t wall_ns() const = 0;
  /// Sleeps until `deadline_ns` (monotonic) or until a stop is requested; true when the deadline was reached.
  virtual bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) = 0;
};

/// The real clock; one per process, stateless.
Clock& system_clock();

/// "2026-01-31T12:00:00Z"
std::string format_utc(std::int64_t wall_ns);
/// "20260131-120000", sorts by time; used in folder names.
std::string format_utc_compact(std::int64_t wall_ns);

/// Parses a text in exactly the format `form` of strftime() to nanoseconds since the Unix epoch; nothing for any other
/// text, such as February 31.
std::optional<std::int64_t> parse_utc(const std::string& text, const char* form);

inline double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace unidle
