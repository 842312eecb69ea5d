// Parses numbers in text, without a locale and without throwing.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "unidle/base/characters.h"

namespace unidle::logs::detail {

/// Letters, digits, "_" and every byte of a character outside ASCII.
inline bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_' || static_cast<signed char>(c) < 0; }

/// Whether two texts of one length differ in digits only.
inline bool differ_in_digits_only(std::string_view one, std::string_view other) {
  return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin(), [](char a, char b) {
           return a == b || (is_digit(a) && is_digit(b));
         });
}

inline void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
}

/// Consumes the number at the front of `text`; "1,234,567" is one number if the groups fit. Never inf or nan. Accepts
/// exponents, but not hexadecimal numbers.
bool take_number(std::string_view& text, double& value);
inline std::optional<double> take_number(std::string_view& text) {
  double value = 0;  // a plain double: passing an optional through all calls is slow
  return take_number(text, value) ? std::optional(value) : std::nullopt;
}

/// All of `text` as one number; nothing if anything follows it.
inline std::optional<double> whole_number(std::string_view text) {
  const auto value = take_number(text);
  return text.empty() ? value : std::nullopt;
}

/// Consumes the unsigned digits at the front of `text`; nothing when there are none or they overflow.
inline std::optional<std::int64_t> take_digits(std::string_view& text) {
  constexpr std::size_t kMost = 18;  // any number of 18 digits fits
  std::int64_t value = 0;
  std::size_t size = 0;
  for (; size < text.size() && is_digit(text[size]); ++size) {
    if (size == kMost) {
      return std::nullopt;
    }
    value = value * 10 + (text[size] - '0');
  }
  text.remove_prefix(size);
  return size > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace unidle::logs::detail
