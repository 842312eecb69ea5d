// How a value is written in YAML source.
#pragma once

#include <string>
#include <string_view>

namespace unidle::knobs::detail {

/// `value` in the style of the old one: `quote` is ' or " to keep quotes, 0 for a plain scalar where that is possible.
std::string written(std::string_view value, char quote, bool in_flow);

/// Bytes that no format has in a string but in escapes.
bool has_control(std::string_view value);

/// True for numbers, booleans and null as JSON spells them.
bool is_json_literal(std::string_view value);

}  // namespace unidle::knobs::detail
