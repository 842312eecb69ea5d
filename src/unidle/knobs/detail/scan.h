// Finds the ends of YAML tokens: yaml-cpp reports only their starts.
#pragma once

#include <cstddef>
#include <string_view>

namespace unidle::knobs::detail {

/// One past the closing quote of the quoted scalar at `begin`; text.size() when it is not closed.
std::size_t end_of_quoted(std::string_view text, std::size_t begin);

/// One past the last line's content of the block scalar whose header (| or >) is at `begin`.
std::size_t end_of_block_scalar(std::string_view text, std::size_t begin);

/// The closing bracket of the flow collection at `begin`, and one past the last byte before it that is neither blank
/// nor comment.
struct FlowEnd {
  std::size_t close;
  std::size_t content_end;
};
/// A quote opens a string only after one of `openers` (and blanks); elsewhere it is a plain character.
FlowEnd end_of_flow(std::string_view text, std::size_t begin, std::string_view openers = "{[,:?");

/// Skips anchors and tags ("&a !!str ") and the blanks after them.
std::size_t skip_properties(std::string_view text, std::size_t begin);

/// The first and one-past-last byte of the line around `at`, without its line end.
std::size_t line_begin(std::string_view text, std::size_t at);
std::size_t line_end(std::string_view text, std::size_t at);

}  // namespace unidle::knobs::detail
