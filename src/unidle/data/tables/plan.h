// What becomes of each column of a table.
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
  bool split = false;  // its cell decides the part
  bool key = false;    // its cell says which row of a side table belongs to this one

  bool number() const { return place != kNowhere && !category && !split && !key; }
};

/// How records of some files become rows.
struct RowPlan {
  NumberFormat numbers{};
  std::vector<ColumnUse> uses;   // of each column of the files
  std::vector<bool> categories;  // of each place in a row

  std::size_t width() const { return categories.size(); }
};

/// What is taken of a side table.
struct JoinPlan {
  RowPlan rows;
  std::size_t key = 0;              // column of the table's own files
  std::vector<std::size_t> places;  // in a row of the table, by place in a row of the side table
  bool splits = false;              // one of its columns decides the part
};

struct TablePlan {
  RowPlan rows;  // all places, also those that side tables fill
  std::vector<JoinPlan> joins;
  std::vector<std::string> names;  // of each place in a row: features, then targets
  std::size_t features = 0;
  /// Where features were not asked for by name: columns of texts, without a name, or of types that no cell holds.
  std::vector<LeftOutColumn> left_out;
};

/// Throws kUsage for a column that is asked for twice, kInput for one that is not there, and for one that two of the
/// tables have. Without features in `options` it looks at the first records: a column is one of numbers when all its
/// cells there are, or are missing; where all are missing it looks at the next ones, and a column that has no value at
/// all is a feature only where options.fill says what it holds. `sides` are the files of
/// options.joins, in their order.
TablePlan make_plan(const TableOptions& options, const CsvLayout& layout, std::span<const CsvLayout> sides);

}  // namespace unidle::data::tables
