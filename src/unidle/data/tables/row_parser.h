// Parses text records to rows of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/dictionary.h"
#include "unidle/data/tables/plan.h"
#include "unidle/data/tables/side_table.h"

namespace unidle::data::tables {

inline constexpr std::uint32_t kMostCategories = 1U << 24;  // float32 holds every whole number up to here

/// A problem in a record.
struct RowProblem {
  std::uint64_t offset;  // in the chunk's file
  std::string what;
};

/// Statistics of a column's values.
struct ColumnFacts {
  std::int64_t missing = 0;
  bool whole = true;         // no value has a fraction
  std::int64_t counted = 0;  // number of finite values in training rows; the rest describes them
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean

  /// Combines the statistics of two sets of values (Chan, Golub and LeVeque 1979).
  void add(const ColumnFacts& other);
};

/// Parses chunks for one thread. Holds the results of the last chunk, except for its dictionaries, which grow: a row's
/// category indices are this parser's own.
class RowParser {
 public:
  /// For a table; `sides` in the order of its joins.
  RowParser(const CsvLayout& layout, const RowPlan& plan, const TableSplit& split, std::span<const SideTable> sides);
  /// For a side table: each row has a unique key, which is added to `keys`.
  RowParser(const CsvLayout& layout, const RowPlan& plan, const TableSplit& split, Dictionary& keys);

  /// Throws RowProblem for the first invalid record.
  void parse(const Chunk& chunk);

  std::int64_t rows() const { return rows_; }
  float* values() { return values_.data(); }                                     // rows() x width, row by row
  const std::vector<std::uint8_t>& validation() const { return validation_; }    // by row; empty without a split
  const std::vector<ColumnFacts>& facts() const { return facts_; }               // by place
  const std::vector<Dictionary>& dictionaries() const { return dictionaries_; }  // by place
  const std::vector<std::int64_t>& unmatched() const { return unmatched_; }      // rows, by side table

 private:
  struct Cell {
    std::string_view text;
    const char* end;  // its delimiter or line feed
  };
  const char* parse_record(const char* at, float* row);
  const char* other_cell(const char* at, std::size_t column, float* row);
  Cell take_cell(const char* at);
  Cell take_quoted(const char* at);
  void take_key(const char* at, std::size_t column, std::string_view text);
  void join(float* row);
  bool is_for_validation_by(const char* begin, const char* end) const;
  void count(const float* row);
  void finish_facts();
  [[noreturn]] void wrong_count(const char* record) const;
  [[noreturn]] void fail(const char* at, std::string what) const;

  const CsvLayout& layout_;
  const RowPlan& plan_;
  const TableSplit& split_;
  std::span<const SideTable> sides_;
  Dictionary* keys_ = nullptr;  // of a side table
  bool splits_;
  bool points_;           // numbers have decimal points
  bool numbers_missing_;  // some numbers mean a missing value
  const Chunk* chunk_ = nullptr;
  std::int64_t rows_ = 0;
  std::vector<float> values_;
  std::vector<std::uint8_t> validation_;
  std::vector<ColumnFacts> facts_;
  std::vector<Dictionary> dictionaries_;
  std::string unquoted_;
  std::string split_cell_;
  std::vector<std::optional<std::size_t>> matches_;  // the current row's match in each side table
  std::vector<std::int64_t> unmatched_;
  struct Sums {
    double base = 0;  // a value of the column, from which deviations are computed
    double sum = 0;
    double squares = 0;
    std::int64_t count = 0;
  };
  std::vector<Sums> sums_;
};

/// Whether a row is for validation, by the text that decides the split.
bool is_for_validation(const TableSplit& split, std::string_view text);

}  // namespace unidle::data::tables
