// Rows of tables in text files, as numbers.
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

/// Which rows are for validation. Fixed by the rows themselves, so that neither other rows nor their order change it:
/// by the hash of the row's text, or, with a column, by that of its cell, so that rows with the same cell stay
/// together.
struct TableSplit {
  double validation = 0;  // share of the rows (or of the column's different cells), from 0 to below 1
  std::uint64_t seed = 0;
  std::string column{};
  std::vector<std::string> values{};  // of the column: those rows are for validation, whatever the share says
};

enum class TablePart { kAll, kTrain, kValidation };

/// What stands for a value that is missing.
enum class TableFill {
  kNan,
  kMean,  // of the training rows
  kValue,
};

/// A side table: its row with the same text in the column `key` belongs to a row.
struct TableJoin {
  std::string key;                 // a column of both tables
  std::vector<std::string> paths;  // as of the table itself
};

/// CSV that was made of a file which is no text: the first line has its columns, each record is a row of it, and all
/// quotes come in pairs. Errors tell of the file and its rows.
struct TextOfFile {
  std::string file;  // as a path of the table or of a side table names it
  std::string text;  // the CSV's path
  struct LeftOut {
    std::string column;
    std::string why;  // "list<item: int64>"
  };
  std::vector<LeftOut> left_out{};  // columns that the CSV does not have, since no cell holds them
};

struct TableOptions {
  /// Files, folders of *.csv, or NAME.csv that stands for NAME_part1.csv, NAME_part2.csv ...
  std::vector<std::string> paths;
  /// Columns by name. Without features (not: with none of them) all columns of numbers that are nothing else.
  std::optional<std::vector<std::string>> features{};
  std::vector<std::string> targets{};
  /// Columns of any texts, each an index into its different texts, from 0 in the order of their first rows; an empty
  /// cell is a text like others. Those that are neither feature nor target follow the features.
  std::vector<std::string> categorical{};
  /// Side tables, whose columns are named like the table's own; a name that two of them have is an error where it is
  /// used. Their keys, like the table's, are no features unless named. A row that has none there has missing values,
  /// and empty texts. Held in memory while the files are read.
  std::vector<TableJoin> joins{};
  TableSplit split{};
  TablePart part = TablePart::kAll;
  /// Features that are no categories are reckoned less their mean, over their standard deviation, of the training rows.
  bool standardize = false;
  TableFill fill = TableFill::kNan;    // in features and targets that are no categories
  double fill_value = 0;               // for kValue
  std::vector<TextOfFile> texts{};     // of the files that are no text
  std::vector<std::string> missing{};  // cells, besides the usual ones, that hold no value where a number is expected
  char decimal = '.';                  // or ','
  char delimiter = 0;                  // 0: a comma where the first line has one, else a tab, a semicolon or a bar
  std::string cache{};                 // folder of the built tables; "tables" in unidle's home when empty
  int threads = 0;                     // that read the files; 0: as many as there are CPUs to use
  /// Called while the files are read, from any thread, one call at a time.
  std::function<void(std::uint64_t bytes, std::uint64_t of)> progress{};
};

/// A column that is used.
struct TableColumn {
  std::string name;
  std::string_view type;                  // "integer", "float" or "text"
  std::int64_t missing = 0;               // cells, of all rows
  double mean = 0;                        // of the training rows' values; 0 where there is none
  double deviation = 0;                   // the standard one, of all training rows (not of a sample)
  std::vector<std::string> categories{};  // texts by index
};

/// A column that is no feature, where features were not asked for by name.
struct LeftOutColumn {
  std::string name;
  std::string why;           // "texts (\"male\", \"female\")"
  bool is_doubtful = false;  // a person would have expected it among the features
};

/// A side table that was joined.
struct JoinedTable {
  std::string key;
  std::int64_t rows = 0;       // of its own
  std::int64_t unmatched = 0;  // rows that it has none for
};

/// CSV in one or many files: a row is a sample, "features" float32 [F] and "targets" float32 [T] (no such field without
/// targets). The first time the files are parsed, by all CPUs, into one file of rows in `cache`; it is used again as
/// long as the CSV files are what they were (path, size, time, hash of head and tail) and the same columns and split
/// are asked for. It is mapped, not read into memory. Each of its blocks is checked when it is first used.
///
/// A number is read as a double, correctly rounded, and then rounded to float32, as numpy's astype does. Throws kInput
/// with "file:line" for a record of other columns, a cell that is no number, a quote that is not closed, a key that a
/// side table has twice; kUsage for options that make no sense; kIo when the table cannot be written; kCorrupt when a
/// block of it is damaged, which also removes it so that the next one builds it anew. Thread-safe.
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
  /// "categories"}], "left_out": [names], "left_out_why": {name: why}, "doubtful": [names of those left out that
  /// a person may miss], "joins": [{"key", "rows", "unmatched"}], "table": path, "built": true when
  /// this object parsed the files}.
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
  std::vector<std::int64_t> rows_;  // by item, where they were chosen
  bool chosen_ = false;
  bool built_ = false;
  std::int64_t features_ = 0;
  std::int64_t grain_ = 1;
  bool as_they_are_ = true;  // neither filled nor standardised
  std::vector<float> fill_;  // by column
  std::vector<double> mean_;
  std::vector<float> scale_;
};

}  // namespace unidle::data
