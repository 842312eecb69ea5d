// Splits text.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace unidle {

/// "a,,b" at ',' -> "a", "", "b"; "" -> one empty part. The parts are views of `text`.
inline std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The text up to its first line end.
inline std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

/// The words between blanks and tabs. Views of `text`.
inline std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\r\n";
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace unidle
