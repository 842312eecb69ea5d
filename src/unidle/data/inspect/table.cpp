#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/error.h"
#include "unidle/base/printable.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/inspect/kinds.h"
#include "unidle/data/tables/chunks.h"
#include "unidle/data/tables/column_statistics.h"
#include "unidle/data/tables/number.h"
#include "unidle/data/tables/parts.h"

namespace unidle::data::inspect_kinds {

namespace {

using tables::CsvLayout;

/// Faults of one kind: lists the first ones with their places, counts the others.
class Faults {
 public:
  void add(std::string_view subject, std::int64_t line, std::string what) {
    ++count_;
    if (first_.size() < kMostTold) {
      first_.push_back({fmt::format("{}:{}", subject, line), std::move(what)});
    } else if (count_ == kMostTold + 1) {
      next_line_ = line;
    }
  }
  void tell(Inspection& result) const {
    for (const Inspection::Problem& fault : first_) {
      result.add_problem(fault.at, fault.what);
    }
    if (count_ > kMostTold) {
      const std::string& at = first_.back().at;
      result.add_problem(fmt::format("{}:{}", at.substr(0, at.rfind(':')), next_line_),
                         fmt::format("and {} more like these, {} in all", count_ - kMostTold, count_));
    }
  }

 private:
  static constexpr std::size_t kMostTold = 3;
  std::vector<Inspection::Problem> first_;
  std::size_t count_ = 0;
  std::int64_t next_line_ = 0;
};

/// Counts of a column's cells by type, over all parts.
struct CellCounts {
  std::int64_t numbers = 0;
  std::int64_t texts = 0;
  std::int64_t missing = 0;
  std::int64_t empty = 0;  // of the missing
  bool whole = true;
  bool numbers_alone_in_a_part = false;
  std::int64_t part_numbers = 0;  // of the current part
  std::int64_t part_texts = 0;
  std::vector<Inspection::Problem> first_texts;
  tables::ColumnStatistics look{tables::kPlainNumbers};
  Faults no_utf8;

  void end_part() {
    numbers_alone_in_a_part = numbers_alone_in_a_part || (part_numbers > 0 && part_texts == 0);
    part_numbers = part_texts = 0;
  }

  /// True when the texts are faults in a column of numbers: they are few, or some part has none.
  bool is_of_numbers() const {
    if (numbers > 0 && look.is_otherwise_of_numbers()) {
      return true;
    }
    const bool few = texts == 0 || (texts == 1 && numbers > 1) || texts * 10 <= numbers;
    return numbers > 0 && (few || (numbers_alone_in_a_part && numbers >= texts));
  }
  std::string type() const {
    if (!is_of_numbers()) {
      return texts > 0 ? "text" : "float";  // empty cells are read as NaN
    }
    return whole ? "integer" : "float";
  }
};

class TableInspection {
 public:
  explicit TableInspection(const InspectOptions& options) : options_(options) { result_.kind = "table"; }

  Inspection run(const std::vector<std::string>& files) {
    std::vector<CsvLayout> layouts;
    for (const std::string& file : files) {
      add_layout(file, files.front(), layouts);
    }
    for (const CsvLayout& layout : layouts) {
      all_bytes_ += layout.parts.front().bytes;
    }
    for (const CsvLayout& layout : layouts) {
      inspect_part(layout);
    }
    finish();
    return std::move(result_);
  }

 private:
  /// Reports a part's layout, compared with the first part's header.
  void add_layout(const std::string& file, const std::string& first, std::vector<CsvLayout>& layouts) {
    try {
      CsvLayout layout = tables::read_layout(file == first ? std::vector{file} : std::vector{first, file}, 0);
      if (layouts.empty()) {
        columns_.resize(layout.columns.size());
        names_ = layout.columns;
      }
      layout.parts.erase(layout.parts.begin(), layout.parts.end() - 1);
      layouts.push_back(std::move(layout));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInput) {
        throw;
      }
      if (file == first || error.subject().starts_with(file)) {
        result_.add_problem(error);
      }
    }
  }

  void inspect_part(const CsvLayout& layout) {
    tables::Chunks chunks(layout);
    tables::Chunk chunk;
    std::int64_t line = 0;
    wrong_counts_ = {};
    try {
      while (chunks.next(chunk)) {
        if (chunk.number == 0) {
          const std::string place = chunks.place(0, chunk.offset);
          line = std::stoll(place.substr(place.rfind(':') + 1));
        }
        inspect_records(layout, chunk, line);
        line += std::count(chunk.text.begin(), chunk.text.end(), '\n');
        done_bytes_ += chunk.text.size();
        if (options_.progress) {
          options_.progress(std::min(done_bytes_, all_bytes_), all_bytes_);
        }
      }
    } catch (const Error& error) {
      result_.add_problem(error);  // an unclosed quote: the rest cannot be split into records
    }
    wrong_counts_.tell(result_);
    for (CellCounts& column : columns_) {
      column.end_part();
    }
  }

  void inspect_records(const CsvLayout& layout, const tables::Chunk& chunk, std::int64_t line) {
    CsvRows rows(chunk.text, layout.parts.front().path, layout.delimiter, line);
    for (;;) {
      try {
        if (!rows.next()) {
          return;
        }
      } catch (const Error& error) {
        result_.add_problem(error);
        rows.skip_line();
        continue;
      }
      const std::vector<std::string>& cells = rows.fields();
      if (cells.size() != columns_.size()) {
        wrong_counts_.add(rows.subject(), rows.line(), tables::wrong_columns(layout, cells.size(), rows.record()));
        continue;
      }
      ++result_.rows;
      for (std::size_t column = 0; column < cells.size(); ++column) {
        count_cell(columns_[column], cells[column], rows);
        if (!tables::is_utf8(cells[column])) {
          columns_[column].no_utf8.add(rows.subject(), rows.line(),
                                       fmt::format("column {}: \"{}\" {}", names_[column],
                                                   printable_line(cells[column].substr(0, 40)), tables::kNoUtf8));
        }
      }
      if (static_cast<std::int64_t>(result_.sample.size()) < options_.sample_rows) {
        result_.sample.push_back(cells);
      }
    }
  }

  static void count_cell(CellCounts& counts, const std::string& cell, const CsvRows& rows) {
    if (tables::is_missing(cell)) {
      ++counts.missing;
      counts.empty += tables::without_blanks(cell).empty() ? 1 : 0;
    } else if (const auto number = tables::cell_number(cell)) {
      ++counts.numbers;
      counts.look.add_number();
      ++counts.part_numbers;
      counts.whole = counts.whole && cell.find_first_of(".eEnN") == std::string::npos;
    } else {
      ++counts.texts;
      counts.look.add_text(cell);
      ++counts.part_texts;
      constexpr std::size_t kMostPlaces = 20;
      if (counts.first_texts.size() < kMostPlaces) {
        counts.first_texts.push_back({fmt::format("{}:{}", rows.subject(), rows.line()), cell.substr(0, 40)});
      }
    }
  }

  void finish() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const CellCounts& column = columns_[i];
      // NA may mean Namibia among texts, and `categorical` treats it as a text.
      const bool texts = column.type() == "text";
      result_.columns.push_back({names_[i], column.type(), texts ? column.empty : column.missing});
      column.no_utf8.tell(result_);
      if (!column.first_texts.empty() && column.look.is_otherwise_of_numbers()) {
        result_.add_problem(column.first_texts.front().at,
                            fmt::format("column {}: {} (options of unidle.data.table)", names_[i], column.look.what()));
        continue;
      }
      if (!column.is_of_numbers()) {
        continue;
      }
      for (const Inspection::Problem& text : column.first_texts) {
        result_.add_problem(text.at, fmt::format("column {}: expected a number, as in {} other cells; found \"{}\"",
                                                 names_[i], column.numbers, printable_line(text.what)));
      }
    }
  }

  const InspectOptions& options_;
  Inspection result_;
  std::vector<std::string> names_;
  std::vector<CellCounts> columns_;
  Faults wrong_counts_;  // of the current part
  std::uint64_t all_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
};

}  // namespace

Inspection table(const std::vector<std::string>& files, const InspectOptions& options) {
  return TableInspection(options).run(files);
}

}  // namespace unidle::data::inspect_kinds
