#include "workloads/timeseries/daily.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/numbers.h"
#include "unidle/data/csv_rows.h"

namespace unidle::workloads::timeseries {

namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

struct DayRow {
  std::int64_t line;
  std::chrono::sys_days day;
  std::vector<std::string> cells;
};

[[noreturn]] void refuse(const std::filesystem::path& path, std::int64_t line, std::string what) {
  throw Error(ErrorCode::kInput, fmt::format("{}:{}", path.string(), line), std::move(what));
}

std::optional<std::chrono::sys_days> parse_day(std::string_view text) {
  if (text.size() != 10) {
    return std::nullopt;
  }
  const auto year = parse_number<int>(text.substr(0, 4));
  const auto month = parse_number<unsigned>(text.substr(5, 2));
  const auto day = parse_number<unsigned>(text.substr(8, 2));
  if (!year || !month || !day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month), std::chrono::day(*day)};
  return date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

std::vector<DayRow> read_rows(const std::filesystem::path& path, std::vector<std::string>& header, std::size_t& date) {
  const std::string text = read_file(path);
  data::CsvRows csv(text, path.string());
  if (!csv.next()) {
    refuse(path, 1, "expected a header line, found nothing");
  }
  header = csv.fields();
  date = static_cast<std::size_t>(std::find(header.begin(), header.end(), "date") - header.begin());
  if (date == header.size()) {
    refuse(path, csv.line(), "has no column date");
  }
  std::vector<DayRow> rows;
  while (csv.next()) {
    if (csv.fields().size() != header.size()) {
      refuse(path, csv.line(), fmt::format("has {} columns; expected {}", csv.fields().size(), header.size()));
    }
    const auto day = parse_day(csv.fields()[date]);
    if (!day || (!rows.empty() && *day <= rows.back().day)) {
      refuse(path, csv.line(),
             fmt::format("date: expected a day like 2012-01-31, later than the row before, found '{}'",
                         csv.fields()[date]));
    }
    rows.push_back({csv.line(), *day, csv.fields()});
  }
  if (rows.empty()) {
    refuse(path, csv.line(), "has no rows");
  }
  return rows;
}

bool is_measurement(const std::vector<DayRow>& rows, std::size_t column) {
  return std::all_of(rows.begin(), rows.end(), [column](const DayRow& row) {
    return row.cells[column].empty() || parse_number<float>(row.cells[column]).has_value();
  });
}

std::size_t day_number(const Daily& daily, const DayRow& row) {
  return static_cast<std::size_t>((row.day - daily.first_day).count());
}

/// The values by day; a missing value is that of the day before, or of the first day that has one.
std::vector<float> measurements(Daily& daily, const std::vector<DayRow>& rows, std::size_t column,
                                const std::filesystem::path& path) {
  std::vector<float> values(static_cast<std::size_t>(daily.days), kMissing);
  for (const DayRow& row : rows) {
    values[day_number(daily, row)] = parse_number<float>(row.cells[column]).value_or(kMissing);
  }
  const auto there = std::find_if(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  constexpr std::ptrdiff_t kLongestStart = 30;
  if (there == values.end() || there - values.begin() > kLongestStart) {
    refuse(path, rows.front().line, fmt::format("column {} of the file has no values here", column + 1));
  }
  float last = *there;
  for (float& value : values) {
    if (!std::isfinite(value)) {
      value = last;
      ++daily.filled;
    }
    last = value;
  }
  return values;
}

void add_texts(Daily& daily, const std::vector<DayRow>& rows, std::size_t column) {
  for (const DayRow& row : rows) {
    auto& days = daily.is[row.cells[column]];
    days.resize(static_cast<std::size_t>(daily.days));
    days[day_number(daily, row)] = true;
  }
}

}  // namespace

std::size_t Daily::column(const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(ErrorCode::kInternal, name, "is not a column");
  }
  return static_cast<std::size_t>(found - names.begin());
}

Daily read_daily(const std::filesystem::path& path) {
  std::vector<std::string> header;
  std::size_t date = 0;
  const std::vector<DayRow> rows = read_rows(path, header, date);
  Daily daily;
  daily.first_day = rows.front().day;
  daily.days = (rows.back().day - daily.first_day).count() + 1;
  for (std::size_t column = 0; column < header.size(); ++column) {
    if (column == date || header[column].ends_with("_hours")) {
      continue;
    }
    if (is_measurement(rows, column)) {
      daily.names.push_back(header[column]);
      daily.columns.push_back(measurements(daily, rows, column, path));
    } else if (daily.is.empty()) {
      add_texts(daily, rows, column);
    } else {
      refuse(path, 1, fmt::format("'{}' is a second column of texts; expected one at most", header[column]));
    }
  }
  if (daily.names.empty()) {
    refuse(path, 1, "has no column of numbers");
  }
  return daily;
}

}  // namespace unidle::workloads::timeseries
