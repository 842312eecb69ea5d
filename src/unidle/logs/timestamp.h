// Times as logs write them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::logs {

/// Nanoseconds since 1970 of the local time that is written; time zones are passed over, because logs of one job are
/// written in one.
struct Stamp {
  std::int64_t ns = 0;
  bool has_year = true;  // "[08/22 16:47:34" and "16:47:34" have none: fit for differences only
  bool has_day = true;
};

/// Finds the time in lines. Remembers the day, so that a time without one belongs to the day of the last full one, and
/// "00:00:01" behind "23:59:59" to the next. Not thread-safe.
class StampReader {
 public:
  /// `line`'s time when it begins with one, perhaps behind "[", "(" or a level's first letter ("I0822 16:47:34").
  std::optional<Stamp> at_begin(std::string_view line);
  /// A time anywhere in `line`: "Mon Aug  4 13:47:37 HKT 2025" or "2025-08-04T15:47:39".
  std::optional<Stamp> anywhere(std::string_view line);
  /// As take_date_time, faster where dates repeat; remembers no day.
  std::optional<std::int64_t> date_time(std::string_view text);

 private:
  Stamp full(std::int64_t ns);
  Stamp of_day(std::int64_t since_midnight_ns);
  Stamp of_year(std::int64_t since_leap_year_ns) const;

  std::int64_t day_ns_ = 0;  // midnight before the last time
  std::int64_t last_of_day_ns_ = -1;
  std::array<char, 11> date_{};  // "2025-08-22 " of the last line that had one, and its midnight
  std::int64_t date_ns_ = 0;
  int year_ = 0;  // of the last full time; 0: none was seen
};

/// "2025-08-22 16:47:34.123", "2025/08/22 16:46:12,159", "2025-08-22T16:47:34Z", moved past.
std::optional<std::int64_t> take_date_time(std::string_view& text);
/// "Mon Aug  4 13:47:38 2025", with or without a zone before the year, moved past.
std::optional<std::int64_t> take_unix_date(std::string_view& text);

/// "2025-08-22 16:47:34"
std::string format_stamp(std::int64_t ns);

}  // namespace unidle::logs
