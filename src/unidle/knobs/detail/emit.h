// Writes values in YAML source.
#pragma once

#include <string>
#include <string_view>

namespace unidle::knobs::detail {

/// `value` in the old value's style: `quote` is ' or " to keep quotes, 0 for a plain scalar if possible.
std::string written(std::string_view value, char quote, bool in_flow);

/// Whether the value has bytes that every format must escape.
bool has_control(std::string_view value);

/// Whether the value is a number, a boolean or null in JSON's spelling.
bool is_json_literal(std::string_view value);

}  // namespace unidle::knobs::detail
