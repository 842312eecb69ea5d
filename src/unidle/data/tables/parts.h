// The files of one table, and what their first lines say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/sources/table.h"

namespace unidle::data::tables {

/// The files that `paths` name, in order: a file is itself, a folder its *.csv and *.tsv in natural order, and NAME.csv
/// that is not there stands for NAME_part1.csv, NAME_part2.csv ... Parts of one name come in the order of their
/// numbers, however they are given. Throws kInput for what is not there, kUsage for no path.
std::vector<std::string> find_parts(const std::vector<std::string>& paths);

/// One file of a table.
struct CsvPart {
  std::string path;  // as errors name it
  std::uint64_t bytes = 0;
  std::uint64_t data_offset = 0;  // of the first record that is data
  bool carriages = false;         // lines end with carriage returns alone, which are read as line feeds
  std::string text{};             // the CSV that was made of it, where it is none itself

  const std::string& read_from() const { return text.empty() ? path : text; }
  /// Where the names of its columns stand, for messages.
  std::string head() const { return text.empty() ? path + ":1" : path; }
};

/// The table as its first lines tell it.
struct CsvLayout {
  std::vector<std::string> columns;  // one without a name is called by its place, as pandas does: "Unnamed: 2"
  std::vector<bool> unnamed;
  char delimiter = ',';
  std::vector<CsvPart> parts;
  std::vector<TextOfFile::LeftOut> left_out{};  // of all its files

  /// The number of a column; throws kInput naming the first file and all columns there are.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
  /// All there are, and what was left out, for messages.
  std::string columns_text() const;
};

/// Reads the first record of each file. The first file's gives the columns; another file begins with the same record,
/// or with data. `delimiter` 0: a comma where the first line has one, else a tab, a semicolon or a bar. `texts` are of
/// those files that are none.
/// Throws kInput with "file:line" for an empty file, UTF-16, names that are no UTF-8, a column that comes twice, and a
/// part with other columns.
CsvLayout read_layout(const std::vector<std::string>& files, char delimiter, std::span<const TextOfFile> texts = {});

/// The text that was made of the file; null where it is one itself.
const TextOfFile* text_of(const std::string& file, std::span<const TextOfFile> texts);

/// Of a record that does not have the columns of the layout: what is wrong with it, and how it seems to be meant.
std::string wrong_columns(const CsvLayout& layout, std::size_t columns, std::string_view record);

/// Texts whose bytes are no UTF-8, for messages.
inline constexpr std::string_view kNoUtf8 = "is no UTF-8 (iconv -f LATIN1 -t UTF-8, say)";
bool is_utf8(std::string_view text);

}  // namespace unidle::data::tables
