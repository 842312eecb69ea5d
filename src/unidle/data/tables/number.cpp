#include "unidle/data/tables/number.h"

#include <fast_float/fast_float.h>

#include <algorithm>

namespace unidle::data::tables {

std::string_view without_blanks(std::string_view cell) {
  const auto blank = [](char byte) { return byte == ' ' || byte == '\t'; };
  while (!cell.empty() && blank(cell.front())) {
    cell.remove_prefix(1);
  }
  while (!cell.empty() && blank(cell.back())) {
    cell.remove_suffix(1);
  }
  return cell;
}

NumberFormat::NumberFormat(const std::vector<std::string>& texts, char decimal_point) : decimal(decimal_point) {
  for (const std::string& text : texts) {
    missing.emplace_back(without_blanks(text));
    const auto number = cell_number(text, decimal);
    if (const auto value = number ? number : cell_number(text)) {
      missing_numbers.push_back(*value);
    }
  }
}

bool NumberFormat::is_missing(std::string_view cell) const {
  return tables::is_missing(cell) ||
         (!missing.empty() && std::find(missing.begin(), missing.end(), without_blanks(cell)) != missing.end());
}

bool is_missing(std::string_view cell) {
  // pandas.read_csv's default na_values (pandas 2.2), and blanks.
  static constexpr std::array<std::string_view, 18> kWords = {
      "",        "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
      "1.#QNAN", "<NA>", "N/A",      "NA",  "NULL",    "NaN",      "None", "n/a",  "nan"};
  const std::string_view text = without_blanks(cell);
  return text == "null" || std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

std::optional<double> cell_number(std::string_view cell, char decimal) {
  std::string_view text = without_blanks(cell);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') {
    text.remove_prefix(1);
  }
  double value = 0;
  const fast_float::parse_options options{fast_float::chars_format::general, decimal};
  const auto [end, failure] = fast_float::from_chars_advanced(text.data(), text.data() + text.size(), value, options);
  const bool fits = failure == std::errc() || failure == std::errc::result_out_of_range;
  if (text.empty() || !fits || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace unidle::data::tables
