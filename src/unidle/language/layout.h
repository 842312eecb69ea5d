// Text on a terminal, where Chinese characters take two columns and lines may break between them.
#pragma once

#include <string>
#include <string_view>

namespace unidle {

/// Columns that UTF-8 text takes. Bytes that are no UTF-8 count as one each.
int display_width(std::string_view text);

/// Fills lines of at most `width` columns; breaks at blanks, between wide characters and, where a word alone is too
/// long, inside it; never between a number and its unit. A blank is kept as one; no line begins with closing
/// punctuation. REQUIRES: width >= 2.
std::string fill(std::string_view text, int width);

/// As fill(), with `mark` before the first line and all other lines indented below it, the whole by `indent`.
std::string block(std::string_view text, int width, int indent, std::string_view mark);

}  // namespace unidle
