// A table whose rows belong to those of another one, by a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/data/tables/dictionary.h"
#include "unidle/data/tables/plan.h"

namespace unidle::data::tables {

/// The columns of it that are used, in memory. Thread-safe.
class SideTable {
 public:
  /// Reads all of it. Throws kInput with "file:line" for a key that is empty or comes twice, and for what RowParser
  /// refuses.
  SideTable(const CsvLayout& layout, const JoinPlan& plan, const TableSplit& split);

  /// The row with that key; an empty key has none.
  std::optional<std::size_t> find(std::string_view key) const;
  std::size_t rows() const { return keys_.size(); }
  /// The column of the other table's files that has its keys.
  std::size_t key() const { return plan_.key; }
  std::size_t width() const { return plan_.rows.width(); }
  /// Where the value of that place stands in a row of the other table.
  std::size_t place(std::size_t own) const { return plan_.places[own]; }
  bool is_category(std::size_t own) const { return plan_.rows.categories[own]; }
  bool is_whole(std::size_t own) const { return whole_[own]; }

  float value(std::size_t row, std::size_t own) const { return values_[row * width() + own]; }
  std::string_view text(std::size_t row, std::size_t own) const;  // of a category
  /// Whether one of its columns decides which rows of the other table are for validation, and what it decides.
  bool splits() const { return plan_.splits; }
  bool is_for_validation(std::size_t row) const { return validation_[row] != 0; }

 private:
  const JoinPlan& plan_;
  Dictionary keys_;            // their numbers are the rows'
  std::vector<float> values_;  // rows x width; of a category the number of its text
  std::vector<Dictionary> categories_;
  std::vector<bool> whole_;
  std::vector<std::uint8_t> validation_;
};

}  // namespace unidle::data::tables
