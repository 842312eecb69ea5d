// Finds the files of a table and reads their first lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/sources/table.h"

namespace unidle::data::tables {

/// Expands `paths` to files, in order: a file is itself, a folder its *.csv and *.tsv in natural order, and a missing
/// NAME.csv stands for NAME_part1.csv, NAME_part2.csv ... Parts of one name are ordered by number, in whatever order
/// they are given. Throws kInput for a missing path, kUsage for no paths.
std::vector<std::string> find_parts(const std::vector<std::string>& paths);

/// One file of a table.
struct CsvPart {
  std::string path;  // as named in errors
  std::uint64_t bytes = 0;
  std::uint64_t data_offset = 0;  // of the first data record
  bool carriages = false;         // lines end with lone carriage returns, read as line feeds
  std::string text{};             // the CSV converted from it, if it is not text itself

  const std::string& read_from() const { return text.empty() ? path : text; }
  /// Where its column names are, for messages.
  std::string head() const { return text.empty() ? path + ":1" : path; }
};

/// The layout of a table, from the first lines of its files.
struct CsvLayout {
  std::vector<std::string> columns;  // unnamed ones are called by position, as in pandas: "Unnamed: 2"
  std::vector<bool> unnamed;
  char delimiter = ',';
  std::vector<CsvPart> parts;
  std::vector<TextOfFile::LeftOut> left_out{};  // of all its files

  /// Returns the index of a column; throws kInput with the first file and all columns.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
  /// Lists all columns, and those left out, for messages.
  std::string columns_text() const;
};

/// Reads the first record of each file. That of the first file names the columns; another file begins with the same
/// record or with data. `delimiter` 0: a comma if the first line has one, otherwise a tab, a semicolon or a bar.
/// `texts` belong to the files that are not text. Throws kInput with "file:line" for an empty file, UTF-16, names that
/// are not UTF-8, a duplicate column, and a part with other columns.
CsvLayout read_layout(const std::vector<std::string>& files, char delimiter, std::span<const TextOfFile> texts = {});

/// Returns the text converted from the file; null if it is text itself.
const TextOfFile* text_of(const std::string& file, std::span<const TextOfFile> texts);

/// Says how a record does not match the layout's columns, and how it was probably meant.
std::string wrong_columns(const CsvLayout& layout, std::size_t columns, std::string_view record);

/// For texts that are not UTF-8, in messages.
inline constexpr std::string_view kNoUtf8 = "is no UTF-8 (iconv -f LATIN1 -t UTF-8, say)";
bool is_utf8(std::string_view text);

}  // namespace unidle::data::tables
