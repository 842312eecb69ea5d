// Numbers out of text, and nothing but numbers.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace unidle {

/// The number that all of `text` is; nothing for an empty text, for anything before or behind the number, for one that
/// does not fit, and for infinities and NaN.
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

}  // namespace unidle
