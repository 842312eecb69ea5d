// The line of the program that pads its texts to a fixed length.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/in_program/sources.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

/// file:line of padding="max_length" or pad_to_max_length=True, the arguments of a tokenizer of transformers; nothing
/// if the program's scripts have none, or several.
std::optional<std::string> line_that_pads(const Signals& signals, Sources& sources);

}  // namespace unidle::diagnose
