// Compares values of knobs that are given as text.
#pragma once

#include <string>
#include <string_view>

#include "unidle/knobs/value.h"

namespace unidle::knobs {

/// One spelling for equal values, independent of the knob: "True", "yes" and "on" become "true"; "None", "off" and ""
/// become "false"; "8.0" becomes "8"; "torch.bfloat16" becomes "bf16". Drops surrounding quotes and blanks.
std::string plain_value(std::string_view text);

/// Whether two texts are the same value: "on" and "True", "0.10" and ".1", "off" and "0".
bool same_value(std::string_view a, std::string_view b);

/// Whether the configured value is in effect in the running program: it has the same value, or one that a switch turned
/// on (amp: true, bf16), or any value if the configuration leaves the choice to the program (auto; 0 threads).
bool in_effect(std::string_view knob, std::string_view configured, std::string_view effective);

/// Converts a value that a program reported, for any knob: a boolean, a number or a word.
Value reported_value(std::string_view text);

}  // namespace unidle::knobs
