// What to do about code of the program that takes time between the steps, or that makes samples.
#pragma once

#include <string>
#include <string_view>

#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::detail {

/// By what the line `where` calls, as far as that is known: by `text`, which may be empty, by the functions that run
/// there, and by reads of the device. Empty for other code.
std::string advice_for_line(const Signals& signals, const std::string& where, std::string_view text);

/// The same for a line that makes samples: how each of them costs less.
std::string advice_for_sample(const Signals& signals, const std::string& where, std::string_view text);

}  // namespace unidle::diagnose::detail
