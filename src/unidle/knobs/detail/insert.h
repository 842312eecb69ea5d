// Inserts a new key into YAML source, in the source's style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/detail/document.h"

namespace unidle::knobs::detail {

/// The text with `path: value` added to the deepest existing mapping of `path`. Throws kInput (subject "name:line:
/// key") when a parent is not a mapping or is an alias. `json` quotes keys.
std::string inserted(const std::string& text, const Document& document, const std::string& name, std::string_view path,
                     std::string_view value, bool json = false);

/// A non-empty pair of brackets to which an entry is added, on a line of its own if the other entries are.
struct FlowPlace {
  std::size_t open = 0;         // the opening bracket
  std::size_t last_begin = 0;   // start of the last entry
  std::size_t content_end = 0;  // after the last byte that is neither blank nor comment
  std::size_t close = 0;        // the closing bracket
};
std::string added_to_flow(const std::string& text, const FlowPlace& place, const std::string& entry);

/// The text's line end.
std::string line_end_of(std::string_view text);

/// One key of "a.b[0].c" with its indices.
struct Segment {
  std::string key;
  std::vector<std::size_t> indices;
};
std::vector<Segment> split_path(std::string_view path);

}  // namespace unidle::knobs::detail
