// Rows of text tables as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/data/source.h"

namespace unidle::data {

namespace tables {
class RowFile;
}

/// Selects the validation rows by the rows' own contents, so that neither other rows nor their order change it: by the
/// hash of the row's text or, with a column, of its cell, so that rows with the same cell stay together.
struct TableSplit {
  double validation = 0;  // share of the rows (or of the column's distinct cells), 0 <= share < 1
  std::uint64_t seed = 0;
  std::string column{};
  std::vector<std::string> values{};  // of the column: these rows are for validation, regardless of the share
};

enum class TablePart { kAll, kTrain, kValidation };

/// What replaces a missing value.
enum class TableFill {
  kNan,
  kMean,  // of the training rows
  kValue,
};

/// A side table: each row of the table is joined with its row of equal text in column `key`.
struct TableJoin {
  std::string key;                 // a column of both tables
  std::vector<std::string> paths;  // like those of the table itself
};

/// CSV converted from a file in another format: its first line has the columns, each record is a row, and all quotes
/// are paired. Errors name the original file and its rows.
struct TextOfFile {
  std::string file;  // as named in the paths of the table or of a side table
  std::string text;  // the CSV's path
  struct LeftOut {
    std::string column;
    std::string why;  // "list<item: int64>"
  };
  std::vector<LeftOut> left_out{};  // columns without a CSV form, which were left out
};

struct TableOptions {
  /// Files, folders of *.csv, or NAME.csv, which stands for NAME_part1.csv, NAME_part2.csv ...
  std::vector<std::string> paths;
  /// Column names. Nothing (unlike an empty list) means all columns of numbers without another role.
  std::optional<std::vector<std::string>> features{};
  std::vector<std::string> targets{};
  /// Columns of any text. Each value becomes an index into the distinct texts, from 0 in the order of first occurrence;
  /// an empty cell is a text too. Those that are neither feature nor target follow the features.
  std::vector<std::string> categorical{};
  /// Side tables, whose columns are used like the table's own; using a name that two tables have is an error. Keys are
  /// not features unless named. Unmatched rows get missing values and empty texts. Held in memory while the files are
  /// read.
  std::vector<TableJoin> joins{};
  TableSplit split{};
  TablePart part = TablePart::kAll;
  /// Standardises numeric features with mean and standard deviation of the training rows.
  bool standardize = false;
  TableFill fill = TableFill::kNan;    // for numeric features and targets
  double fill_value = 0;               // for kValue
  std::vector<TextOfFile> texts{};     // of the files that are not text
  std::vector<std::string> missing{};  // more cells that mean a missing value where a number is expected
  char decimal = '.';                  // or ','
  char delimiter = 0;                  // 0: a comma if the first line has one, otherwise a tab, a semicolon or a bar
  std::string cache{};                 // folder of the built tables; when empty, "tables" in unidle's home
  int threads = 0;                     // threads that parse the files; 0: all usable CPUs
  /// Called while the files are read, from any thread, one call at a time.
  std::function<void(std::uint64_t bytes, std::uint64_t of)> progress{};
};

/// A column in use.
struct TableColumn {
  std::string name;
  std::string_view type;                  // "integer", "float" or "text"
  std::int64_t missing = 0;               // number of cells, of all rows
  double mean = 0;                        // of the training rows' values; 0 without any
  double deviation = 0;                   // standard deviation of all training rows (population, not sample)
  std::vector<std::string> categories{};  // texts by index
};

/// A column left out of the features, when features were not named.
struct LeftOutColumn {
  std::string name;
  std::string why;           // "texts (\"male\", \"female\")"
  bool is_doubtful = false;  // a person might expect it among the features
};

/// A joined side table.
struct JoinedTable {
  std::string key;
  std::int64_t rows = 0;       // of its own
  std::int64_t unmatched = 0;  // rows of the table without a match
};

/// CSV in one or many files: a row is a sample, "features" float32 [F] and "targets" float32 [T] (omitted without
/// targets). The first use parses the files on all CPUs into one row file in `cache`, which is reused while the CSV
/// files are unchanged (path, size, time, hash of head and tail) and columns and split are the same. The row file is
/// mapped; each block is checked at its first use.
///
/// Numbers are parsed as correctly rounded doubles, then rounded to float32, like numpy's astype. Throws kInput with
/// "file:line" for a wrong number of columns, a cell that is not a number, an unclosed quote, and a duplicate key of a
/// side table; kUsage for invalid options; kIo when the table cannot be written; kCorrupt for a damaged block, removing
/// the row file so that the next run rebuilds it. Thread-safe.
class TableSource final : public Source {
 public:
  explicit TableSource(const TableOptions& options, Disk& disk = system_disk());
  ~TableSource() override;

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override;
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;
  /// {"features": [names], "targets": [names], "columns": [{"name", "type", "missing", "mean", "deviation",
  /// "categories"}], "left_out": [names], "left_out_why": {name: why}, "doubtful": [left-out names that a person may
  /// expect], "joins": [{"key", "rows", "unmatched"}], "table": path, "built": true when this object parsed the files}.
  std::string describe() const override;
  std::string value_name(std::int64_t item, std::size_t field, std::int64_t value) const override;

  /// Features first, then targets.
  std::span<const TableColumn> columns() const;
  std::int64_t features() const { return features_; }

 private:
  void choose_rows(TablePart part);
  void prepare_values(const TableOptions& options);
  std::int64_t row_of(std::int64_t item) const { return chosen_ ? rows_[static_cast<std::size_t>(item)] : item; }
  void put(const float* from, std::byte* to, std::size_t first, std::size_t count) const;

  std::unique_ptr<tables::RowFile> file_;
  std::vector<Field> fields_;
  std::vector<std::int64_t> rows_;  // by item, if a selection of rows was made
  bool chosen_ = false;
  bool built_ = false;
  std::int64_t features_ = 0;
  std::int64_t grain_ = 1;
  bool unchanged_ = true;    // neither filled nor standardised
  std::vector<float> fill_;  // by column
  std::vector<double> mean_;
  std::vector<float> scale_;
};

}  // namespace unidle::data
