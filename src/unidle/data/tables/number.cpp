#include "unidle/data/tables/number.h"

#include <fast_float/fast_float.h>

#include <algorithm>

namespace unidle::data::tables {

namespace {

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

}  // namespace

bool is_missing(std::string_view cell) {
  // pandas.read_csv's default na_values (pandas 2.2), and blanks alone.
  static constexpr std::array<std::string_view, 18> kWords = {
      "",        "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
      "1.#QNAN", "<NA>", "N/A",      "NA",  "NULL",    "NaN",      "None", "n/a",  "nan"};
  const std::string_view text = without_blanks(cell);
  return text == "null" || std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

std::optional<double> cell_number(std::string_view cell) {
  std::string_view text = without_blanks(cell);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto [end, failure] = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = failure == std::errc() || failure == std::errc::result_out_of_range;
  if (text.empty() || !fits || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace unidle::data::tables
