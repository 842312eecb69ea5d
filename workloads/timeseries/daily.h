// Daily measurements out of a CSV file.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace unidle::workloads::timeseries {

/// One value a day for each column, from the first day to the last without a hole.
struct Daily {
  std::chrono::sys_days first_day;
  std::int64_t days = 0;
  std::vector<std::string> names;               // of the columns of numbers, in the file's order
  std::vector<std::vector<float>> columns;      // [column][day]
  std::map<std::string, std::vector<bool>> is;  // a text of the column of texts -> on which days it stands there
  std::int64_t filled = 0;                      // values that were missing and are those of the day before

  std::size_t column(const std::string& name) const;  // throws kInternal when there is none
};

/// The column `date` (2012-01-31 or 2012/01/31) has one row a day in rising order; days that are left out count as
/// missing. Columns whose values are numbers or empty are measurements, at most one column has texts. Columns that end
/// in `_hours` only count readings and are left out. Throws kInput with file and line for anything else, and for a
/// column that begins without a value for over 30 days.
Daily read_daily(const std::filesystem::path& path);

}  // namespace unidle::workloads::timeseries
