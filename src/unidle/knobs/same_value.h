// When two texts mean the same value of a knob.
#pragma once

#include <string>
#include <string_view>

#include "unidle/knobs/value.h"

namespace unidle::knobs {

/// One spelling for all that mean the same, whatever the knob: "True", "yes" and "on" are "true"; "None", "off" and ""
/// are "false"; "8.0" is "8"; "torch.bfloat16" is "bf16". Quotes and blanks around it are left out.
std::string plain_value(std::string_view text);

/// Two spellings of one value: "on" and "True", "0.10" and ".1", "off" and "0".
bool same_value(std::string_view a, std::string_view b);

/// The live program has what was configured: the same value, or what a switch turned on (amp: true, bf16), or any value
/// where the configured one leaves the choice to the program (auto; 0 threads).
bool in_effect(std::string_view knob, std::string_view configured, std::string_view effective);

/// What a program reported, whatever the knob: a switch, a number or a word.
Value reported_value(std::string_view text);

}  // namespace unidle::knobs
