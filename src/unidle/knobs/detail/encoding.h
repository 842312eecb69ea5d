// Reads and writes values for each meaning of a key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs::detail {

enum class Reading {
  kNo,       // not a valid value: the key means something else
  kUnknown,  // possibly valid, but the knob's value depends on more ("auto")
  kKnown,
};

struct Decoded {
  Reading reading = Reading::kNo;
  std::optional<Value> value = {};    // for kKnown
  Meaning meaning = Meaning::kValue;  // a switch with a format as its value is a format
};

/// What `value` (without quotes) says about `knob` under a key with this meaning.
Decoded decode(const Knob& knob, Meaning meaning, std::string_view value);

/// The text for `value` in a key with this meaning and the current text `old`. Nothing when there is none.
std::optional<std::string> encode(const Knob& knob, Meaning meaning, const Value& value, std::string_view old);

/// The meaning of a key, given its literal: a string "no" for a mixed-precision switch, or among the words for formats,
/// is accelerate's word beside fp16 and bf16, not a switch. If the file's syntax is ambiguous (no in YAML), it is a
/// switch.
Meaning meaning_beside(const Knob& knob, Meaning meaning, const Scalar& literal);

/// "true" or "false" for every spelling of a boolean; nothing for anything else. 0 and 1 are numbers.
std::optional<bool> boolean_of(std::string_view value);

/// `value` as a boolean in the spelling of `old`: True, yes, on, 1.
std::string boolean_like(bool value, std::string_view old);

/// off, fp16 or bf16 for the name of a number format or precision mode.
std::optional<std::string> format_of(std::string_view value);

}  // namespace unidle::knobs::detail
