// Parses numbers and booleans; the whole text must match.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

#include "unidle/base/characters.h"

namespace unidle {

/// The number in `text`; nothing for an empty text, extra characters, an overflow, infinity or NaN.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(value)) {
      return std::nullopt;
    }
  }
  return value;
}

/// true, yes, on and 1, or false, no, off and 0, ignoring case.
inline std::optional<bool> parse_bool(std::string_view text) {
  const auto is = [&](std::string_view word) {
    if (text.size() != word.size()) {
      return false;
    }
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (lower(text[i]) != word[i]) {
        return false;
      }
    }
    return true;
  };
  static constexpr std::array<std::string_view, 8> kWords = {"true", "yes", "on", "1", "false", "no", "off", "0"};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (is(kWords[i])) {
      return i < kWords.size() / 2;
    }
  }
  return std::nullopt;
}

}  // namespace unidle
