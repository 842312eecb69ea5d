// What can be changed in a Python program while it runs, without touching its code.
#pragma once

#include <span>
#include <string_view>

namespace unidle::diagnose {

/// Knobs that the shim can turn (python/shim/_unidle_shim/actuators.py). Whether one takes in a given program is read
/// back from it.
std::span<const std::string_view> run_time_knobs();
bool applies_at_run_time(std::string_view knob);

}  // namespace unidle::diagnose
