#include "unidle/logs/timestamp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "unidle/base/characters.h"
#include "unidle/base/clock.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs {

namespace {

using detail::skip_blanks;

constexpr std::int64_t kDayNs = 86'400 * kNsPerSecond;
constexpr int kLeapYear = 1972;  // replaces an unknown year: it has a 29 February

/// Consumes exactly `count` digits at the front; -1 if there are fewer.
int take_fixed(std::string_view& text, std::size_t count) {
  if (text.size() < count) {
    return -1;
  }
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) {
      return -1;
    }
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

/// The day in ns since 1970; nothing for an invalid date.
std::optional<std::int64_t> day_ns(int year, int month, int day) {
  using namespace std::chrono;
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1) {
    return std::nullopt;
  }
  const year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) {
    return std::nullopt;
  }
  return sys_days(date).time_since_epoch().count() * kDayNs;
}

/// ".159" or ",159"; reads up to nine digits.
std::int64_t take_fraction(std::string_view& text) {
  if (text.size() < 2 || (text.front() != '.' && text.front() != ',') || !is_digit(text[1])) {
    return 0;
  }
  text.remove_prefix(1);
  std::int64_t ns = 0;
  std::int64_t unit = kNsPerSecond / 10;
  while (!text.empty() && is_digit(text.front())) {
    ns += unit * (text.front() - '0');
    unit /= 10;
    text.remove_prefix(1);
  }
  return ns;
}

/// Two digits at `at`; above 99 if they are not digits.
int two_digits(const char* at) {
  const int tens = at[0] - '0';
  const int ones = at[1] - '0';
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : 100;
}

/// "16:47:34" with an optional fraction; ns since midnight.
std::optional<std::int64_t> take_time(std::string_view& text) {
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') {
    return std::nullopt;
  }
  const int hour = two_digits(text.data());
  const int minute = two_digits(text.data() + 3);
  const int second = two_digits(text.data() + 6);
  if (hour > 23 || minute > 59 || second > 60 || (text.size() > 8 && is_digit(text[8]))) {
    return std::nullopt;
  }
  text.remove_prefix(8);
  return ((hour * 60 + minute) * 60 + second) * kNsPerSecond + take_fraction(text);
}

/// "08/22/2025 16:47:34" and "08/22 16:47:34".
std::optional<Stamp> take_month_first(std::string_view& text) {
  std::string_view rest = text;
  const int month = take_fixed(rest, 2);
  if (month < 1 || !take(rest, '/')) {
    return std::nullopt;
  }
  const int day = take_fixed(rest, 2);
  int year = kLeapYear;
  const bool has_year = take(rest, '/');
  if (has_year) {
    year = take_fixed(rest, 4);
  }
  const auto date = day_ns(year, month, day);
  if (!date || !take(rest, ' ')) {
    return std::nullopt;
  }
  const auto time = take_time(rest);
  if (!time) {
    return std::nullopt;
  }
  text = rest;
  return Stamp{*date + *time, has_year, true};
}

/// glog: "I0822 16:47:34.123456 ".
std::optional<Stamp> take_glog(std::string_view text) {
  if (text.empty() || std::string_view("IWEF").find(text.front()) == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const int month = take_fixed(text, 2);
  const int day = take_fixed(text, 2);
  const auto date = month < 1 ? std::nullopt : day_ns(kLeapYear, month, day);
  if (!date || !take(text, ' ')) {
    return std::nullopt;
  }
  const auto time = take_time(text);
  return time ? std::optional(Stamp{*date + *time, false, true}) : std::nullopt;
}

/// The rest of the line from the date on: "INFO 2024-03-05 10:04:20", "WARNING:2024-03-05 10:04:20". Empty without a
/// level at the front.
std::string_view behind_level(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && at < 9 && is_upper(line[at])) {
    ++at;
  }
  constexpr std::size_t kShortest = 4;  // INFO, WARN
  const std::size_t name = at;
  while (at < line.size() && at < name + 6 && (line[at] == ' ' || line[at] == ':' || line[at] == ']')) {
    ++at;
  }
  const bool dated = name >= kShortest && at > name && line.size() > at + 4 && is_digit(line[at]) &&
                     is_digit(line[at + 3]) && line[at + 4] == '-';
  return dated ? line.substr(at) : std::string_view();
}

/// The line behind the rank that a launcher puts before it: "[rank0]:", "[default3]:", "[0]<stdout>:",
/// "[1,3]<stderr>:", "3: " of srun -l.
std::string_view behind_rank(std::string_view line) {
  constexpr std::size_t kLongest = 24;
  const std::string_view head = line.substr(0, kLongest);
  if (head.empty() || (head.front() != '[' && !is_digit(head.front()))) {
    return line;
  }
  std::size_t end = head.find(':');
  const bool srun = is_digit(head.front()) && head.find_first_not_of("0123456789") == end;
  const bool bracketed = head.starts_with("[rank") || head.starts_with("[default") || head.starts_with("[Rank") ||
                         head.find("]<std") != std::string_view::npos;
  if (end == std::string_view::npos || !(bracketed || (srun && line.substr(end + 1).starts_with(" ")))) {
    return line;
  }
  end = std::min(line.find_first_not_of(' ', end + 1), line.size());
  return line.substr(end);
}

int month_of(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                               "jul", "aug", "sep", "oct", "nov", "dec"};
  if (text.size() < 3) {
    return -1;
  }
  const std::array<char, 3> name = {lower(text[0]), lower(text[1]), lower(text[2])};
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (std::string_view(name.data(), 3) == kMonths[i]) {
      return static_cast<int>(i) + 1;
    }
  }
  return -1;
}

}  // namespace

std::optional<std::int64_t> take_date_time(std::string_view& text) {
  std::string_view rest = text;
  const int year = take_fixed(rest, 4);
  if (year < 0 || rest.empty() || (rest.front() != '-' && rest.front() != '/')) {
    return std::nullopt;
  }
  const char mark = rest.front();
  rest.remove_prefix(1);
  const int month = take_fixed(rest, 2);
  if (month < 1 || !take(rest, mark)) {
    return std::nullopt;
  }
  const int day = take_fixed(rest, 2);
  const auto date = day_ns(year, month, day);
  if (!date || (!take(rest, ' ') && !take(rest, 'T') && !take(rest, '_'))) {
    return std::nullopt;
  }
  const auto time = take_time(rest);
  if (!time) {
    return std::nullopt;
  }
  text = rest;
  return *date + *time;
}

std::optional<std::int64_t> take_unix_date(std::string_view& text) {
  // Weekday, month, day, time, perhaps a zone, year.
  std::string_view rest = text;
  if (rest.size() < 4 || !is_blank(rest[3])) {
    return std::nullopt;
  }
  rest.remove_prefix(4);
  skip_blanks(rest);
  const int month = month_of(rest);
  if (month < 1) {
    return std::nullopt;
  }
  rest.remove_prefix(3);
  skip_blanks(rest);
  const auto day = detail::take_digits(rest);
  if (!day || *day > 31) {
    return std::nullopt;
  }
  skip_blanks(rest);
  const auto time = take_time(rest);
  if (!time) {
    return std::nullopt;
  }
  skip_blanks(rest);
  std::size_t zone = 0;
  while (zone < rest.size() && zone < 6 && !is_digit(rest[zone]) && !is_blank(rest[zone])) {
    ++zone;
  }
  rest.remove_prefix(zone);
  skip_blanks(rest);
  const int year = take_fixed(rest, 4);
  const auto date = day_ns(year, month, static_cast<int>(*day));
  if (!date) {
    return std::nullopt;
  }
  text = rest;
  return *date + *time;
}

Stamp StampReader::full(std::int64_t ns) {
  using namespace std::chrono;
  if (year_ != 0 && ns >= day_ns_ && ns - day_ns_ < kDayNs) {  // nearly every line: same day as the previous one
    last_of_day_ns_ = ns - day_ns_;
    return {ns, true, true};
  }
  day_ns_ = ns - ns % kDayNs;
  last_of_day_ns_ = ns % kDayNs;
  year_ = static_cast<int>(year_month_day(sys_days(days(ns / kDayNs))).year());
  return {ns, true, true};
}

Stamp StampReader::of_day(std::int64_t since_midnight_ns) {
  if (since_midnight_ns + kDayNs / 2 < last_of_day_ns_) {
    day_ns_ += kDayNs;  // past midnight; a small step backwards only means lines out of order
  }
  last_of_day_ns_ = since_midnight_ns;
  return {day_ns_ + since_midnight_ns, year_ != 0, year_ != 0};
}

/// Moves month and day from the stand-in year to the year of the last full time.
Stamp StampReader::of_year(std::int64_t since_leap_year_ns) const {
  using namespace std::chrono;
  const year_month_day date(sys_days(days(since_leap_year_ns / kDayNs)));
  const auto day = year_ == 0 ? std::nullopt
                              : day_ns(year_, static_cast<int>(static_cast<unsigned>(date.month())),
                                       static_cast<int>(static_cast<unsigned>(date.day())));
  return day ? Stamp{*day + since_leap_year_ns % kDayNs, true, true} : Stamp{since_leap_year_ns, false, true};
}

std::optional<std::int64_t> StampReader::date_time(std::string_view text) {
  if (text.size() > date_.size() && text.substr(0, date_.size()) == std::string_view(date_.data(), date_.size())) {
    text.remove_prefix(date_.size());
    const auto time = take_time(text);
    return time ? std::optional(date_ns_ + *time) : std::nullopt;
  }
  std::string_view rest = text;
  const auto ns = take_date_time(rest);
  if (ns) {
    std::copy_n(text.begin(), date_.size(), date_.begin());
    text.remove_prefix(date_.size());
    date_ns_ = *ns - *take_time(text);  // not the midnight before *ns: a time of 23:59:60 exists
  }
  return ns;
}

std::optional<Stamp> StampReader::at_begin(std::string_view line) {
  line = behind_rank(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  while (!line.empty() && (line.front() == '[' || line.front() == '(' || line.front() == ' ' || line.front() == '"')) {
    line.remove_prefix(1);
  }
  if (line.size() < 8) {
    return std::nullopt;
  }
  if (const std::string_view behind = behind_level(line); !behind.empty()) {
    const auto ns = date_time(behind);
    return ns ? std::optional(full(*ns)) : std::nullopt;
  }
  std::optional<Stamp> stamp;
  if (!is_digit(line.front())) {
    stamp = take_glog(line);
  } else if (is_digit(line[2])) {
    const auto ns = date_time(line);
    return ns ? std::optional(full(*ns)) : std::nullopt;
  } else if (line[2] == '/') {
    stamp = take_month_first(line);
  } else if (line[2] == ':') {
    const auto time = take_time(line);
    return time && (line.empty() || !detail::is_word(line.front())) ? std::optional(of_day(*time)) : std::nullopt;
  }
  if (stamp && stamp->has_year) {
    return full(stamp->ns);
  }
  return stamp ? std::optional(of_year(stamp->ns)) : std::nullopt;
}

std::optional<Stamp> StampReader::anywhere(std::string_view line) {
  for (std::size_t at = 0; at + 19 <= line.size(); ++at) {
    std::string_view rest = line.substr(at);
    const bool starts = at == 0 || !detail::is_word(line[at - 1]) || static_cast<signed char>(line[at - 1]) < 0;
    if (!starts) {
      continue;
    }
    const auto ns = is_digit(rest.front()) ? take_date_time(rest) : take_unix_date(rest);
    if (ns) {
      return full(*ns);
    }
  }
  return std::nullopt;
}

std::string format_stamp(std::int64_t ns) {
  std::string text = format_utc(ns);
  if (text.size() >= 20) {
    text[10] = ' ';
    text.resize(19);
  }
  return text;
}

}  // namespace unidle::logs
