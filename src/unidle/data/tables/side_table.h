// A table that is joined with another one by key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/data/tables/dictionary.h"
#include "unidle/data/tables/plan.h"

namespace unidle::data::tables {

/// The used columns of a side table, in memory. Thread-safe.
class SideTable {
 public:
  /// Reads the whole table. Throws kInput with "file:line" for an empty or duplicate key, and for everything that
  /// RowParser rejects.
  SideTable(const CsvLayout& layout, const JoinPlan& plan, const TableSplit& split);

  /// Returns the row with that key; nothing for an empty or unknown key.
  std::optional<std::size_t> find(std::string_view key) const;
  std::size_t rows() const { return keys_.size(); }
  /// The column of the joining table that contains the keys.
  std::size_t key() const { return plan_.key; }
  std::size_t width() const { return plan_.rows.width(); }
  /// The place in the joining table's row for this place.
  std::size_t place(std::size_t own) const { return plan_.places[own]; }
  bool is_category(std::size_t own) const { return plan_.rows.categories[own]; }
  bool is_whole(std::size_t own) const { return whole_[own]; }

  float value(std::size_t row, std::size_t own) const { return values_[row * width() + own]; }
  std::string_view text(std::size_t row, std::size_t own) const;  // of a category
  /// Whether one of its columns decides the split of the joining table, and how.
  bool splits() const { return plan_.splits; }
  bool is_for_validation(std::size_t row) const { return validation_[row] != 0; }

 private:
  const JoinPlan& plan_;
  Dictionary keys_;            // their numbers are the row numbers
  std::vector<float> values_;  // rows x width; for a category, the number of its text
  std::vector<Dictionary> categories_;
  std::vector<bool> whole_;
  std::vector<std::uint8_t> validation_;
};

}  // namespace unidle::data::tables
