// Reads daily measurements from a CSV file.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace unidle::workloads::timeseries {

/// One value per day and column, without gaps from the first day to the last.
struct Daily {
  std::chrono::sys_days first_day;
  std::int64_t days = 0;
  std::vector<std::string> names;               // of the numeric columns, in the file's order
  std::vector<std::vector<float>> columns;      // [column][day]
  std::map<std::string, std::vector<bool>> is;  // text of the text column -> the days that have it
  std::int64_t filled = 0;                      // number of missing values filled in from the day before

  std::size_t column(const std::string& name) const;  // throws kInternal when there is none
};

/// The column `date` (2012-01-31 or 2012/01/31) has one row per day in rising order; skipped days count as missing.
/// Columns of numbers or empty cells are measurements; at most one column has texts. Columns ending in `_hours` only
/// count readings and are dropped. Throws kInput with file and line for anything else, and for a column that begins
/// with more than 30 days without a value.
Daily read_daily(const std::filesystem::path& path);

}  // namespace unidle::workloads::timeseries
