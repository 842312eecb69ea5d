// Makes foreign text (names of kernels and processes, exceptions, values, file names, log lines) safe to show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unidle {

/// Whether a terminal or a page interprets the character instead of showing it: control characters (C0, DEL, C1),
/// direction marks, line and paragraph separators, and invisible characters (tags, annotations).
bool is_interpreted(std::uint32_t code_point);

/// `text` as valid UTF-8 with U+FFFD for each such character and each invalid byte. Newlines, tabs, and carriage
/// returns right before a newline stay. Thread-safe.
std::string printable(std::string_view text);

/// The same on one line: newlines and tabs become blanks.
std::string printable_line(std::string_view text);

/// `text` without complete terminal sequences: colours, cursor moves, titles and other escapes. An incomplete sequence
/// removes nothing but itself. Returns a view of `text` or of `scratch`. Thread-safe.
std::string_view without_escapes(std::string_view text, std::string& scratch);
std::string without_escapes(std::string_view text);

}  // namespace unidle
