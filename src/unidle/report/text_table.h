// Tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace unidle::report {

/// Columns of text within `width` columns of the terminal: the first left-aligned, the others right-aligned. If they do
/// not fit, each row becomes a small block: its first cell, then "header: cell" lines. Rows may be shorter than the
/// header.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text(int width) const;

 private:
  std::string stacked(int width) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// At most `length` columns; the last one is "…" when text was cut.
std::string cut(const std::string& text, std::size_t length);

}  // namespace unidle::report
