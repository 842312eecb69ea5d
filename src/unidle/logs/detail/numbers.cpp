#include "unidle/logs/detail/numbers.h"

#include <array>

namespace unidle::logs::detail {

namespace {

/// Length of "d{1,3}(,ddd)+" at the front of `text`; 0 if it does not match.
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
      return 0;  // four digits: the comma did not separate a group
    }
  }
  return text[at - 1] == ',' || at < 5 ? 0 : at;
}

/// Fast path for nearly every number of a log: "12", "0.0313", at most fifteen digits and no exponent. The digits as an
/// integer and the power of ten are then exact, so that their quotient is rounded once, as from_chars does it. Returns
/// the length; 0 for any other number.
std::size_t plain_number(std::string_view text, double& value) {
  static constexpr std::array<double, 16> kPowers = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  std::uint64_t digits = 0;
  std::size_t at = 0;
  std::size_t behind_point = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    digits = digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  if (at > 0 && at < text.size() && text[at] == '.') {
    const std::size_t point = at++;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      digits = digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
    }
    behind_point = at - point - 1;
  }
  if (at == 0 || at > 15) {
    return 0;
  }
  if (at < text.size()) {
    const bool grouped = text[at] == ',' && at + 1 < text.size() && is_digit(text[at + 1]);
    if (grouped || (text[at] | 0x20) == 'e') {
      return 0;
    }
  }
  value = static_cast<double>(static_cast<std::int64_t>(digits));
  if (behind_point > 0) {
    value /= kPowers[behind_point];
  }
  return at;
}

}  // namespace

bool take_number(std::string_view& text, double& value) {
  if (const std::size_t size = plain_number(text, value); size > 0) {
    text.remove_prefix(size);
    return true;
  }
  if (const std::size_t size = grouped(text); size > 0) {
    value = 0;
    for (const char c : text.substr(0, size)) {
      value = c == ',' ? value : value * 10 + (c - '0');
    }
    text.remove_prefix(size);
    return true;
  }
  if (text.empty() || !(is_digit(text.front()) || text.front() == '-' || text.front() == '+' || text.front() == '.')) {
    return false;  // excludes "inf" and "nan"
  }
  const std::size_t sign = text.front() == '+' ? 1 : 0;  // from_chars does not accept a plus
  const std::size_t first = text.front() == '-' || text.front() == '+' ? 1 : 0;
  if (first >= text.size() || !(is_digit(text[first]) || text[first] == '.')) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace unidle::logs::detail
