// Searches a text for several words.
#pragma once

#include <algorithm>
#include <string_view>

namespace unidle {

/// Whether `text` contains one of `words`, a range of string views.
template <typename Words>
bool contains_any(std::string_view text, const Words& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Whether `text` begins with one of `words`.
template <typename Words>
bool starts_with_any(std::string_view text, const Words& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

}  // namespace unidle
