// Decides how each column of a table is used.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/sources/table.h"
#include "unidle/data/tables/number.h"
#include "unidle/data/tables/parts.h"

namespace unidle::data::tables {

struct ColumnUse {
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::size_t place = kNowhere;  // in the row
  bool category = false;
  bool split = false;  // its cell decides the split
  bool key = false;    // its cell is the key of a side table

  bool number() const { return place != kNowhere && !category && !split && !key; }
};

/// How the records of some files become rows.
struct RowPlan {
  NumberFormat numbers{};
  std::vector<ColumnUse> uses;   // per column of the files
  std::vector<bool> categories;  // per place in a row

  std::size_t width() const { return categories.size(); }
};

/// What is used of a side table.
struct JoinPlan {
  RowPlan rows;
  std::size_t key = 0;              // column of the table's own files
  std::vector<std::size_t> places;  // in a row of the table, by place in a row of the side table
  bool splits = false;              // one of its columns decides the split
};

struct TablePlan {
  RowPlan rows;  // all places, including those that side tables fill
  std::vector<JoinPlan> joins;
  std::vector<std::string> names;  // per place in a row: features, then targets
  std::size_t features = 0;
  /// When features were not named: columns of texts, unnamed ones, and types without a CSV form.
  std::vector<LeftOutColumn> left_out;
};

/// Throws kUsage for a column that is used twice, kInput for a missing or ambiguous one. Without features in `options`,
/// it inspects the first records: a column is numeric when all its cells there are numbers or missing. If all are
/// missing, it inspects more records; a column without any value is a feature only if options.fill gives one. `sides`
/// are the files of options.joins, in order.
/// options.joins, in their order.
TablePlan make_plan(const TableOptions& options, const CsvLayout& layout, std::span<const CsvLayout> sides);

}  // namespace unidle::data::tables
