// Line ends of old Macs, a carriage return alone, and the mark before a text.
#pragma once

#include <algorithm>
#include <string>

namespace unidle::data::detail {

/// All of them become line feeds. Of CRLF an empty line is left, which readers pass over.
inline void feed_lines(char* begin, char* end) { std::replace(begin, end, '\r', '\n'); }

/// A whole text with line feeds where it has carriage returns alone.
inline std::string with_line_feeds(std::string text) {
  if (text.find('\n') == std::string::npos) {
    feed_lines(text.data(), text.data() + text.size());
  }
  return text;
}

/// A text without the mark that some editors put before UTF-8.
inline std::string without_mark(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.erase(0, 3);
  }
  return text;
}

}  // namespace unidle::data::detail
