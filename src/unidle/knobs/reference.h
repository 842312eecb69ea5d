// Writes the knob reference of the manual.
#pragma once

#include <string>

namespace unidle::knobs {

/// docs/knobs.md: all knobs with type, class, values, default and explanation, as Markdown.
std::string reference_markdown();

}  // namespace unidle::knobs
