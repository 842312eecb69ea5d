// Text of others (names of kernels and processes, exceptions, values, file names, log lines) that is to be shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unidle {

/// True for what a terminal or a page acts upon instead of showing it: control characters (C0, DEL, C1), marks that
/// turn the direction of writing, separators of lines and paragraphs, and characters that are only there unseen (tags,
/// annotations).
bool acts_unseen(std::uint32_t code_point);

/// `text` as valid UTF-8 in which each such character, and each byte that is no UTF-8, is replaced by U+FFFD. Newlines,
/// tabs, and carriage returns right before a newline stay. Thread-safe.
std::string printable(std::string_view text);

/// The same on one line: newlines and tabs become blanks.
std::string printable_line(std::string_view text);

/// `text` without whole terminal sequences: colours, cursor moves, titles, and what else an escape begins. One that is
/// not ended takes nothing else with it. Either `text` itself or what `scratch` then holds. Thread-safe.
std::string_view without_escapes(std::string_view text, std::string& scratch);
std::string without_escapes(std::string_view text);

}  // namespace unidle
