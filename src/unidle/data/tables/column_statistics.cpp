#include "unidle/data/tables/column_statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "unidle/base/characters.h"
#include "unidle/base/printable.h"

namespace unidle::data::tables {

namespace {

constexpr std::size_t kMostTexts = 4;  // in messages
constexpr std::size_t kMostShown = 20;

bool is_letter_or_digit(unsigned char byte) { return std::isalnum(byte) != 0 || byte >= 0x80; }

/// True for marks alone ("?", "--", ".") and words for a missing value. Inner spaces are part of a word.
bool stands_for_nothing(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kWords = {
      "missing", "unknown", "none", "nil", "undefined", "not available", "n.a.", "na", "nan", "null", "nd", "n.d."};
  if (text.size() <= kMostShown && std::none_of(text.begin(), text.end(), is_letter_or_digit)) {
    return true;
  }
  return text.size() <= kMostShown && std::find(kWords.begin(), kWords.end(), lower(std::string(text))) != kWords.end();
}

/// True for a possible whole number with thousands separators: "1,234", "12,345,678".
bool may_be_thousands(std::string_view text, char separator) {
  constexpr std::size_t kGroup = 4;  // including the separator
  const std::size_t first = text.find(separator);
  for (std::size_t at = first; at != std::string_view::npos && at < text.size(); at += kGroup) {
    const std::string_view group = text.substr(at, kGroup);
    const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
    if (group.size() != kGroup || group[0] != separator || !std::all_of(group.begin() + 1, group.end(), is_digit)) {
      return false;
    }
  }
  return first != std::string_view::npos && first != 0;
}

std::string quoted(std::string_view text) {
  std::size_t end = std::min(text.size(), kMostShown);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;  // within a character
  }
  return fmt::format("\"{}{}\"", printable_line(text.substr(0, end)), end < text.size() ? "..." : "");
}

}  // namespace

void ColumnStatistics::add(std::string_view cell) {
  if (format_->is_missing(cell)) {
    ++missing_;
    return;
  }
  if (const auto number = cell_number(cell, format_->decimal)) {
    ++(format_->is_missing(*number) ? missing_ : numbers_);
    return;
  }
  add_text(cell);
}

void ColumnStatistics::add_text(std::string_view cell) {
  const std::string_view text = without_blanks(cell);
  ++texts_;
  if (stands_for_nothing(text)) {
    ++markers_;
    keep(first_markers_, text);
    return;
  }
  keep(first_others_, text);
  if (text.find(other_point()) != std::string_view::npos) {
    const bool thousands = may_be_thousands(text, other_point());
    thousands_ += thousands ? 1 : 0;
    groups_ += thousands && std::count(text.begin(), text.end(), other_point()) > 1 ? 1 : 0;
    decimals_ += thousands || cell_number(text, other_point()) ? 1 : 0;
  }
}

void ColumnStatistics::keep(std::vector<std::string>& texts, std::string_view text) {
  if (texts.size() < kMostTexts && std::find(texts.begin(), texts.end(), text) == texts.end()) {
    texts.emplace_back(text);
  }
}

std::string ColumnStatistics::options() const {
  if (!is_otherwise_of_numbers() || (decimals_ > 0 && decimals_ == thousands_) || groups_ > 0) {
    return {};
  }
  std::vector<std::string> all;
  std::vector<std::string> markers;
  std::transform(first_markers_.begin(), first_markers_.end(), std::back_inserter(markers), quoted);
  if (!markers.empty()) {
    all.push_back(fmt::format("missing=[{}]", fmt::join(markers, ", ")));
  }
  if (decimals_ > 0) {
    all.push_back(fmt::format("decimal=\"{}\"", other_point()));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string ColumnStatistics::shown_texts() const {
  std::vector<std::string> shown;
  std::transform(first_others_.begin(), first_others_.end(), std::back_inserter(shown), quoted);
  std::transform(first_markers_.begin(), first_markers_.end(), std::back_inserter(shown), quoted);
  shown.resize(std::min(shown.size(), kMostTexts));
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string ColumnStatistics::what() const {
  if (filled() == 0) {
    return "all cells are empty";
  }
  const std::string wanted = options();
  const std::string advice = wanted.empty() ? "" : fmt::format("; {} reads them", wanted);
  if (decimals_ > 0 && is_otherwise_of_numbers()) {
    const std::string_view name = other_point() == ',' ? "comma" : "point";
    const std::string where = fmt::format("s ({}) in {} of {} cells", shown_texts(), decimals_, filled());
    if (groups_ > 0) {
      return fmt::format("numbers in groups of thousands with {}{}, which are not read", name, where);
    }
    if (wanted.empty()) {
      return fmt::format(
          "numbers with {}{}; decimal=\"{}\" reads these as decimal points, groups of thousands are not read", name,
          where, other_point());
    }
    return fmt::format("numbers with decimal {}{}{}", name, where, advice);
  }
  if (texts_ == 0) {
    return fmt::format("numbers in {} cells", numbers_);
  }
  if (numbers_ == 0) {
    return fmt::format("texts ({})", shown_texts());
  }
  return fmt::format("numbers in {} of {} cells, others in {} ({}){}", numbers_, filled(), texts_, shown_texts(),
                     advice);
}

std::string advice_for(std::string_view cell, const NumberFormat& format) {
  const std::string_view text = without_blanks(cell);
  if (stands_for_nothing(text)) {
    return fmt::format("; missing=[{}] reads it as missing", quoted(text));
  }
  const char other = format.decimal == '.' ? ',' : '.';
  if (!may_be_thousands(text, other) && cell_number(text, other)) {
    return fmt::format("; decimal=\"{}\" reads it as a number", other);
  }
  return {};
}

}  // namespace unidle::data::tables
