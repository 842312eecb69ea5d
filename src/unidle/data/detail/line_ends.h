// Handles carriage returns as line ends (classic Mac OS) and the byte order mark.
#pragma once

#include <algorithm>
#include <string>

namespace unidle::data::detail {

/// Turns carriage returns into line feeds. CRLF becomes an extra empty line, which readers skip.
inline void feed_lines(char* begin, char* end) { std::replace(begin, end, '\r', '\n'); }

/// Replaces lone carriage returns in a text by line feeds.
inline std::string with_line_feeds(std::string text) {
  if (text.find('\n') == std::string::npos) {
    feed_lines(text.data(), text.data() + text.size());
  }
  return text;
}

/// Removes the byte order mark that some editors write before UTF-8.
inline std::string without_mark(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.erase(0, 3);
  }
  return text;
}

}  // namespace unidle::data::detail
