#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

/// Length of "d{1,3}(,ddd)+" at the front of `text`; 0 when it is not grouped so.
std::size_t grouped(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && at < 4 && is_digit(text[at])) {
    ++at;
  }
  if (at == 0 || at > 3 || at >= text.size() || text[at] != ',') {
    return 0;
  }
  while (at + 3 < text.size() && text[at] == ',' && is_digit(text[at + 1]) && is_digit(text[at + 2]) &&
         is_digit(text[at + 3])) {
    at += 4;
    if (at < text.size() && is_digit(text[at])) {
      return 0;  // four digits: the comma was no group
    }
  }
  return text[at - 1] == ',' || at < 5 ? 0 : at;
}

}  // namespace

std::optional<double> take_number(std::string_view& text) {
  if (const std::size_t size = grouped(text); size > 0) {
    double value = 0;
    for (const char c : text.substr(0, size)) {
      value = c == ',' ? value : value * 10 + (c - '0');
    }
    text.remove_prefix(size);
    return value;
  }
  if (text.empty() || !(is_digit(text.front()) || text.front() == '-' || text.front() == '+' || text.front() == '.')) {
    return std::nullopt;  // keeps "inf" and "nan" out
  }
  const std::size_t sign = text.front() == '+' ? 1 : 0;  // from_chars takes no plus
  const std::size_t first = text.front() == '-' || text.front() == '+' ? 1 : 0;
  if (first >= text.size() || !(is_digit(text[first]) || text[first] == '.')) {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace unidle::logs::detail
