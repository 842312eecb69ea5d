// Reads times in the formats of logs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unidle::logs {

/// Nanoseconds since 1970 in local time as written; time zones are ignored, because all logs of a job use the same one.
struct Stamp {
  std::int64_t ns = 0;
  bool has_year = true;  // false for "[08/22 16:47:34" and "16:47:34": use for differences only
  bool has_day = true;
};

/// Finds times in lines. Remembers the day, so that a time without a date belongs to the day of the last full one, and
/// "00:00:01" after "23:59:59" to the next day. Not thread-safe.
class StampReader {
 public:
  /// The time at the start of `line`, possibly after "[", "(" or a level's first letter ("I0822 16:47:34").
  std::optional<Stamp> at_begin(std::string_view line);
  /// A time anywhere in `line`: "Mon Aug  4 13:47:37 HKT 2025" or "2025-08-04T15:47:39".
  std::optional<Stamp> anywhere(std::string_view line);
  /// Like take_date_time, faster for repeated dates; does not remember the day.
  std::optional<std::int64_t> date_time(std::string_view text);

 private:
  Stamp full(std::int64_t ns);
  Stamp of_day(std::int64_t since_midnight_ns);
  Stamp of_year(std::int64_t since_leap_year_ns) const;

  std::int64_t day_ns_ = 0;  // midnight before the last time
  std::int64_t last_of_day_ns_ = -1;
  std::array<char, 11> date_{};  // "2025-08-22 " from the last line with a date
  std::int64_t date_ns_ = 0;
  int year_ = 0;  // of the last full time; 0: none yet
};

/// Consumes "2025-08-22 16:47:34.123", "2025/08/22 16:46:12,159" or "2025-08-22T16:47:34Z".
std::optional<std::int64_t> take_date_time(std::string_view& text);
/// Consumes "Mon Aug  4 13:47:38 2025", with or without a zone before the year.
std::optional<std::int64_t> take_unix_date(std::string_view& text);

/// "2025-08-22 16:47:34"
std::string format_stamp(std::int64_t ns);

}  // namespace unidle::logs
