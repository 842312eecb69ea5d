// Numbers out of text, without a locale and without throwing.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "unidle/base/characters.h"

namespace unidle::logs::detail {

/// Letters, digits, "_" and every byte of a character outside ASCII.
inline bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_' || static_cast<signed char>(c) < 0; }

inline void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
}

/// The number that `text` begins with, moved past; "1,234,567" counts as one number where the groups fit. Never inf or
/// nan. Exponents are read, hexadecimal numbers are not.
bool take_number(std::string_view& text, double& value);
inline std::optional<double> take_number(std::string_view& text) {
  double value = 0;  // not an optional from the start: those are slow to hand around
  return take_number(text, value) ? std::optional(value) : std::nullopt;
}

/// `text` as one whole number: nothing else may stand behind it.
inline std::optional<double> whole_number(std::string_view text) {
  const auto value = take_number(text);
  return text.empty() ? value : std::nullopt;
}

/// The unsigned digits at the front of `text`, moved past; nothing when there is none or they do not fit.
inline std::optional<std::int64_t> take_digits(std::string_view& text) {
  constexpr std::size_t kMost = 18;  // that many fit, whatever they are
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
