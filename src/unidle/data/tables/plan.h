// What becomes of each column of a table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/sources/table.h"
#include "unidle/data/tables/parts.h"

namespace unidle::data::tables {

struct ColumnUse {
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::size_t place = kNowhere;  // in the row
  bool category = false;
  bool split = false;  // its cell decides the part

  bool number() const { return place != kNowhere && !category && !split; }
  bool skipped() const { return place == kNowhere && !split; }
};

struct TablePlan {
  std::vector<ColumnUse> uses;     // of each column of the files
  std::vector<std::string> names;  // of each place in a row: features, then targets
  std::vector<bool> categories;    // likewise
  std::size_t features = 0;
  std::vector<std::string> left_out;  // columns that features were not asked for by name and that hold texts

  std::size_t width() const { return names.size(); }
};

/// Throws kUsage for a column that is asked for twice, kInput for one that is not there. Without features in `options`
/// it looks at the first records: a column is one of numbers when all its cells there are, or are missing.
TablePlan make_plan(const TableOptions& options, const CsvLayout& layout);

}  // namespace unidle::data::tables
