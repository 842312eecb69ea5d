// How values are written for each meaning of a key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs::detail {

enum class Reading {
  kNo,       // not a value that such a key has: the key is something else
  kUnknown,  // may be one, but this alone does not tell the knob's value ("auto")
  kKnown,
};

struct Decoded {
  Reading reading = Reading::kNo;
  std::string canonical;              // when kKnown
  Meaning meaning = Meaning::kValue;  // a switch that holds a format is a format
};

/// What `value` (without quotes) says about `knob` under a key of that meaning.
Decoded decode(const Knob& knob, Meaning meaning, std::string_view value);

/// How a key of that meaning, which now holds `old`, says `canonical`. Nothing when it cannot.
std::optional<std::string> encode(const Knob& knob, Meaning meaning, std::string_view canonical, std::string_view old);

/// What a key means, given the literal that it has: a text "no" for a switch of mixed precision, or one among words for
/// formats, is accelerate's word beside fp16 and bf16 and no switch. Where the file's syntax leaves open whether it is
/// a text (no in YAML), it is a switch.
Meaning meaning_beside(const Knob& knob, Meaning meaning, const Scalar& literal);

/// "true" or "false" for every way to write a boolean; nothing for anything else. 0 and 1 count as numbers.
std::optional<bool> boolean_of(std::string_view value);

/// `value` as a boolean written the way `old` is: True, yes, on, 1.
std::string boolean_like(bool value, std::string_view old);

/// off, fp16, bf16 for the name of a number format or precision mode.
std::optional<std::string> format_of(std::string_view value);

}  // namespace unidle::knobs::detail
