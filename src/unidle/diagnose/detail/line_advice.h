// What to do about code of the program that takes time between the steps, or that makes samples.
#pragma once

#include <string>
#include <string_view>

#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::detail {

/// By what the line `where` calls, as far as that is known: by `text`, which may be empty, by the functions that run
/// there, and by reads of the device. Empty for other code.
std::string advice_for_line(const Signals& signals, const Policy& policy, const std::string& where,
                            std::string_view text);

/// How samples cost less. `called`: the function of a package that takes the time, with its module; `text`: the line
/// that calls it. Either may be empty. Empty for other code.
std::string advice_for_sample(std::string_view called, std::string_view text);

}  // namespace unidle::diagnose::detail
