// Text layout for a terminal, where Chinese characters take two columns and lines may break between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unidle {

/// The number of columns of UTF-8 text. Invalid bytes count as one each.
int display_width(std::string_view text);

/// As much from the front as takes at most `width` columns.
std::string_view prefix_of_width(std::string_view text, int width);

/// Fills lines of at most `width` columns. Breaks at blanks, between wide characters and, if a single word is too long,
/// inside it; never between a number and its unit. Repeated blanks become one; no line begins with closing punctuation.
/// REQUIRES: width >= 2.
std::string fill(std::string_view text, int width);

/// Like fill(), with `mark` before the first line, other lines aligned after it, and everything indented by `indent`.
std::string block(std::string_view text, int width, int indent, std::string_view mark);

/// A command for a shell, laid out like block(): a line that goes on ends with a backslash, so that it can be copied.
/// Breaks only between words; a longer word makes a longer line. Nothing inside words changes.
std::string command_block(std::string_view command, int width, int indent, std::string_view mark);

/// The line that Progress draws, at most `columns` wide: "label [####....] 3/8 note ETA 5 s".
std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, std::string_view note,
                          double elapsed_s, int columns);

}  // namespace unidle
