#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs {

namespace {

constexpr std::size_t kContext = 3;
/// Above this many cells, the table of common subsequences needs too much memory; the middle is shown as replaced.
constexpr std::size_t kMostCells = 16'000'000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct LineEdit {
  char kind;  // ' ', '-', '+'
  std::string_view line;
};

using Lines = std::vector<std::string_view>;

/// Longest common subsequence of a[begin..] and b[begin..] by dynamic programming.
void compare_middle(const Lines& a, const Lines& b, std::size_t begin, std::size_t end_a, std::size_t end_b,
                    std::vector<LineEdit>& edits) {
  const std::size_t rows = end_a - begin;
  const std::size_t columns = end_b - begin;
  const bool small = (rows + 1) * (columns + 1) <= kMostCells;
  std::vector<std::uint32_t> table(small ? (rows + 1) * (columns + 1) : 0, 0);
  const auto cell = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return table[i * (columns + 1) + j]; };
  for (std::size_t i = small ? rows : 0; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      cell(i, j) = a[begin + i] == b[begin + j] ? cell(i + 1, j + 1) + 1 : std::max(cell(i + 1, j), cell(i, j + 1));
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows || j < columns) {
    if (small && i < rows && j < columns && a[begin + i] == b[begin + j]) {
      edits.push_back({' ', a[begin + i]});
      ++i;
      ++j;
    } else if (i < rows && (j == columns || !small || cell(i + 1, j) >= cell(i, j + 1))) {
      edits.push_back({'-', a[begin + i++]});
    } else {
      edits.push_back({'+', b[begin + j++]});
    }
  }
}

std::vector<LineEdit> compare(const Lines& a, const Lines& b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) {
    ++head;
  }
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<LineEdit> edits;
  for (std::size_t i = 0; i < head; ++i) {
    edits.push_back({' ', a[i]});
  }
  compare_middle(a, b, head, a.size() - tail, b.size() - tail, edits);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) {
    edits.push_back({' ', a[i]});
  }
  return edits;
}

std::string range(std::size_t start, std::size_t count) {
  return count == 1 ? fmt::format("{}", start) : fmt::format("{},{}", count == 0 ? start - 1 : start, count);
}

void print_hunk(const std::vector<LineEdit>& edits, std::size_t begin, std::size_t end, std::size_t line_a,
                std::size_t line_b, std::string& out) {
  const auto count = [&](char other) {
    return static_cast<std::size_t>(std::count_if(edits.begin() + static_cast<std::ptrdiff_t>(begin),
                                                  edits.begin() + static_cast<std::ptrdiff_t>(end),
                                                  [&](const LineEdit& edit) { return edit.kind != other; }));
  };
  out += fmt::format("@@ -{} +{} @@\n", range(line_a, count('+')), range(line_b, count('-')));
  for (std::size_t i = begin; i < end; ++i) {
    out += edits[i].kind;
    out += edits[i].line;
    if (!edits[i].line.ends_with('\n')) {
      out += "\n\\ No newline at end of file\n";
    }
  }
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view name) {
  if (before == after) {
    return {};
  }
  const std::vector<LineEdit> edits = compare(lines_of(before), lines_of(after));
  // Programs that apply it read a name up to the first blank, unless a tab ends it.
  const std::string_view end_of_name = name.find(' ') == std::string_view::npos ? "" : "\t";
  std::string out = fmt::format("--- {0}{1}\n+++ {0}{1}\n", name, end_of_name);
  std::size_t line_a = 1;
  std::size_t line_b = 1;
  std::size_t at = 0;
  const auto advance_to = [&](std::size_t target) {
    for (; at < target; ++at) {
      line_a += edits[at].kind != '+';
      line_b += edits[at].kind != '-';
    }
  };
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].kind == ' ') {
      continue;
    }
    const std::size_t begin = std::max(at, i > kContext ? i - kContext : 0);
    std::size_t last = i;  // the hunk continues while the context of the next change touches it
    for (std::size_t j = i; j < edits.size() && j <= last + 2 * kContext; ++j) {
      last = edits[j].kind == ' ' ? last : j;
    }
    const std::size_t end = std::min(edits.size(), last + 1 + kContext);
    advance_to(begin);
    print_hunk(edits, begin, end, line_a, line_b, out);
    advance_to(end);
    i = end - 1;
  }
  return out;
}

}  // namespace unidle::knobs
