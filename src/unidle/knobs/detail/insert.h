// Inserting a new key into YAML source, in the source's own style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/detail/document.h"

namespace unidle::knobs::detail {

/// The text with `path: value` added below the deepest mapping of `path` that exists. Throws kInput (subject
/// "name:line: key") when something on the way is no mapping or is an alias. `json` puts keys in quotes.
std::string inserted(const std::string& text, const Document& document, const std::string& name, std::string_view path,
                     std::string_view value, bool json = false);

/// Adds an entry to what stands between a pair of brackets and is not empty, on a line of its own where the others have
/// one.
struct FlowPlace {
  std::size_t open = 0;         // the opening bracket
  std::size_t last_begin = 0;   // the last entry
  std::size_t content_end = 0;  // behind the last byte that is neither blank nor comment
  std::size_t close = 0;        // the closing bracket
};
std::string added_to_flow(const std::string& text, const FlowPlace& place, const std::string& entry);

/// The line end that the text uses.
std::string line_end_of(std::string_view text);

/// "a.b[0].c" taken apart.
struct Segment {
  std::string key;
  std::vector<std::size_t> indices;
};
std::vector<Segment> split_path(std::string_view path);

}  // namespace unidle::knobs::detail
