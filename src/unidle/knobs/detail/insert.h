// Inserting a new key into YAML source, in the source's own style.
#pragma once

#include <string>
#include <string_view>

#include "unidle/knobs/detail/document.h"

namespace unidle::knobs::detail {

/// The text with `path: value` added below the deepest mapping of `path` that exists. Throws kInput (subject
/// "name:line: key") when something on the way is no mapping or is an alias.
std::string inserted(const std::string& text, const Document& document, const std::string& name, std::string_view path,
                     std::string_view value);

}  // namespace unidle::knobs::detail
