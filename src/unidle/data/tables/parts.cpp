#include "unidle/data/tables/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/printable.h"
#include "unidle/base/utf8.h"
#include "unidle/data/csv_rows.h"
#include "unidle/data/detail/foreign_bytes.h"
#include "unidle/data/detail/line_ends.h"
#include "unidle/data/detail/natural_order.h"
#include "unidle/data/detail/open_files.h"
#include "unidle/data/tables/number.h"
#include "unidle/data/tables/record_scan.h"

namespace unidle::data::tables {

namespace {

namespace fs = std::filesystem;

bool natural_path_less(const std::string& a, const std::string& b) { return detail::natural_less(a, b); }

std::vector<std::string> tables_in(const fs::path& folder) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string extension = lower(entry.path().extension().string());
    if (entry.is_regular_file() && (extension == ".csv" || extension == ".tsv")) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end(), natural_path_less);
  return found;
}

/// The part before the number in "FOLDER/NAME_part12.csv"; empty for other names.
std::string series_of(const fs::path& path) {
  const std::string stem = path.stem().string();
  std::size_t at = stem.size();
  while (at > 0 && std::isdigit(static_cast<unsigned char>(stem[at - 1])) != 0) {
    --at;
  }
  constexpr std::string_view kPart = "_part";
  const std::string_view before = std::string_view(stem).substr(0, at);
  if (at == stem.size() || !before.ends_with(kPart)) {
    return {};
  }
  return (path.parent_path() / before).string();
}

std::vector<std::string> parts_of(const fs::path& whole) {
  std::vector<std::string> found;
  const fs::path folder = whole.parent_path().empty() ? fs::path(".") : whole.parent_path();
  if (fs::is_directory(status_of(folder))) {
    const std::string series = (whole.parent_path() / whole.stem()).string() + "_part";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const fs::path path = whole.parent_path() / entry.path().filename();
      if (path.extension() == whole.extension() && series_of(path) == series) {
        found.push_back(path.string());
      }
    }
  }
  std::sort(found.begin(), found.end(), natural_path_less);
  return found;
}

std::vector<std::string> files_of(const std::string& path) {
  const fs::file_status status = status_of(path);
  std::vector<std::string> found{path};
  if (fs::is_directory(status)) {
    found = tables_in(path);
    if (found.empty()) {
      throw Error(ErrorCode::kInput, path, "has no *.csv and no *.tsv");
    }
  } else if (!fs::exists(status)) {
    found = parts_of(path);
    if (found.empty()) {
      throw Error(ErrorCode::kInput, path, "does not exist, nor does any part of it",
                  fmt::format("expected the file, or {}_part1.csv and so on", fs::path(path).stem().string()));
    }
  }
  return found;
}

/// The first record of a file.
struct Head {
  std::string text;       // with its line end, without the byte order mark
  std::uint64_t end = 0;  // where the second record begins
  bool carriages = false;
};

/// Replaces lone carriage returns by line feeds.
std::string with_feeds_alone(std::string text, bool whole_file) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool alone = i + 1 < text.size() ? text[i + 1] != '\n' : whole_file;
    text[i] = text[i] == '\r' && alone ? '\n' : text[i];
  }
  return text;
}

constexpr std::size_t kMostHeadBytes = std::size_t{64} << 20;

Head read_head(detail::OpenFiles& files, std::size_t file, char delimiter) {
  const std::string& path = files.path(file);
  for (std::size_t wanted = 64 * 1024;; wanted *= 8) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, files.bytes(file)));
    std::string text(bytes, '\0');
    files.read(file, 0, std::as_writable_bytes(std::span(text)));
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
      throw Error(ErrorCode::kInput, path + ":1", "is UTF-16; expected UTF-8", "iconv -f UTF-16 -t UTF-8");
    }
    if (const auto foreign = detail::foreign_bytes(text)) {
      throw Error(ErrorCode::kInput, path, foreign->what + "; expected text", foreign->hint);
    }
    const std::size_t mark = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
    std::size_t begin = mark;
    while (begin < text.size() && (text[begin] == '\n' || text[begin] == '\r')) {
      ++begin;
    }
    if (begin == text.size() && bytes == files.bytes(file)) {
      throw Error(ErrorCode::kInput, path + ":1", "is empty; expected the names of columns");
    }
    const bool whole_file = bytes == files.bytes(file);
    const std::string fed = with_feeds_alone(text, whole_file);
    const auto scan = scan_records(CsvState::kRecord, std::string_view(fed).substr(begin), delimiter);
    if (scan.first_end != std::string_view::npos || whole_file) {
      const std::size_t end = scan.first_end == std::string_view::npos ? text.size() : begin + scan.first_end;
      const bool carriages = end > 0 && text[end - 1] == '\r';
      return {(carriages ? fed : text).substr(mark, end - mark), end, carriages};
    }
    if (bytes >= kMostHeadBytes) {
      throw Error(ErrorCode::kInput, path + ":1", "has no line end in 64 MiB; expected the names of columns");
    }
  }
}

char sniff_delimiter(std::string_view line) {
  for (const char delimiter : {',', '\t', ';', '|'}) {
    if (line.find(delimiter) != std::string_view::npos) {
      return delimiter;
    }
  }
  return ',';
}

/// Whether a part's first record, which differs from the header, is data: a cell is a number, or all texts are new.
bool is_data(const std::vector<std::string>& cells, const std::vector<std::string>& columns) {
  const auto is_number = [](const std::string& cell) { return cell_number(cell).has_value(); };
  const auto is_name = [&](const std::string& cell) {
    return std::find(columns.begin(), columns.end(), cell) != columns.end();
  };
  return std::any_of(cells.begin(), cells.end(), is_number) || std::none_of(cells.begin(), cells.end(), is_name);
}

bool has_column(const std::vector<std::string>& columns, const std::string& name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

void set_columns(CsvLayout& layout, std::vector<std::string> columns) {
  for (std::size_t column = 0; column < columns.size(); ++column) {
    layout.unnamed.push_back(without_blanks(columns[column]).empty());
    if (layout.unnamed.back()) {
      std::string name = fmt::format("Unnamed: {}", column);
      while (has_column(columns, name)) {
        name += ".1";
      }
      columns[column] = std::move(name);
    }
  }
  layout.columns = std::move(columns);
}

/// Whether a part's first record has the same names as that of the first part.
bool are_columns(const CsvLayout& layout, const std::vector<std::string>& cells) {
  if (cells.size() != layout.columns.size()) {
    return false;
  }
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const bool same =
        layout.unnamed[column] ? without_blanks(cells[column]).empty() : cells[column] == layout.columns[column];
    if (!same) {
      return false;
    }
  }
  return true;
}

void check_columns(const std::vector<std::string>& columns, const CsvPart& part) {
  for (const std::string& column : columns) {
    if (!is_utf8(column)) {
      throw Error(ErrorCode::kInput, part.head(),
                  fmt::format("the name of the column {} {}", printable_line(column), kNoUtf8));
    }
  }
  std::vector<std::string> sorted = columns;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw Error(ErrorCode::kInput, part.head(), fmt::format("the column \"{}\" comes twice", *twice),
                cell_number(*twice) ? "the first line names the columns; put one before it where it is a row" : "");
  }
}

void add_new(std::vector<TextOfFile::LeftOut>& columns, const std::vector<TextOfFile::LeftOut>& more) {
  for (const TextOfFile::LeftOut& one : more) {
    const auto is_it = [&](const TextOfFile::LeftOut& other) { return other.column == one.column; };
    if (std::none_of(columns.begin(), columns.end(), is_it)) {
      columns.push_back(one);
    }
  }
}

}  // namespace

std::vector<std::string> find_parts(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    for (std::string& file : files_of(path)) {
      found.push_back(std::move(file));
    }
  }
  if (found.empty()) {
    throw Error(ErrorCode::kUsage, "table option paths", "expected at least one file");
  }
  const std::string series = series_of(found.front());
  if (!series.empty() &&
      std::all_of(found.begin(), found.end(), [&](const std::string& path) { return series_of(path) == series; })) {
    std::sort(found.begin(), found.end(), natural_path_less);
  }
  return found;
}

std::size_t CsvLayout::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) {
    throw Error(ErrorCode::kInput, parts.front().head(),
                fmt::format("has no column {}; there are: {}", name, columns_text()));
  }
  return static_cast<std::size_t>(found - columns.begin());
}

std::string CsvLayout::columns_text() const {
  std::string text = fmt::format("{}", fmt::join(columns, ", "));
  for (const TextOfFile::LeftOut& one : left_out) {
    text += fmt::format("{}{} ({})", &one == &left_out.front() ? "; left out: " : ", ", one.column, one.why);
  }
  return text;
}

bool CsvLayout::has(std::string_view name) const {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

const TextOfFile* text_of(const std::string& file, std::span<const TextOfFile> texts) {
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const TextOfFile& one) { return one.file == file; });
  return found == texts.end() ? nullptr : &*found;
}

CsvLayout read_layout(const std::vector<std::string>& files, char delimiter, std::span<const TextOfFile> texts) {
  CsvLayout layout;
  detail::OpenFiles open;
  for (const std::string& path : files) {
    const TextOfFile* made = text_of(path, texts);
    const std::size_t file = open.add(made != nullptr ? made->text : path);
    const bool first = layout.parts.empty();
    if (first) {
      const auto sniffed = [&] { return made != nullptr ? ',' : sniff_delimiter(read_head(open, file, ',').text); };
      layout.delimiter = delimiter != 0 ? delimiter : sniffed();
    }
    const Head head = read_head(open, file, layout.delimiter);
    CsvRows rows(head.text, path, layout.delimiter);
    rows.next();
    CsvPart part{path, open.bytes(file), head.end, head.carriages, made != nullptr ? made->text : ""};
    if (made != nullptr) {
      add_new(layout.left_out, made->left_out);
    }
    if (first) {
      set_columns(layout, rows.fields());
      check_columns(layout.columns, part);
    } else if (!are_columns(layout, rows.fields())) {
      if (made != nullptr || !is_data(rows.fields(), layout.columns)) {
        throw Error(ErrorCode::kInput, made != nullptr ? path : fmt::format("{}:{}", path, rows.line()),
                    fmt::format("has the columns {}; expected {}, as {} has", fmt::join(rows.fields(), ", "),
                                fmt::join(layout.columns, ", "), files.front()));
      }
      part.data_offset = head.text.size() == head.end ? 0 : head.end - head.text.size();
    }
    layout.parts.push_back(std::move(part));
  }
  return layout;
}

std::string wrong_columns(const CsvLayout& layout, std::size_t columns, std::string_view record) {
  std::string text = fmt::format("has {} columns; expected {}", columns, layout.columns.size());
  for (const char delimiter : {',', '\t', ';', '|'}) {
    const auto found = static_cast<std::size_t>(std::count(record.begin(), record.end(), delimiter));
    if (columns == 1 && delimiter != layout.delimiter && found + 1 >= layout.columns.size()) {
      return text + fmt::format(" (the first line parts its names by {:?}, this one its cells by {:?})",
                                layout.delimiter, delimiter);
    }
  }
  const std::size_t last = record.find_last_not_of("\r\n");
  if (columns == layout.columns.size() + 1 && last != std::string_view::npos && record[last] == layout.delimiter) {
    text += fmt::format(" ({:?} ends the line; end the first line so too)", layout.delimiter);
  }
  return text;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = first_code_point(text).bytes;
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace unidle::data::tables
