// The calls by which programs hand their settings to a framework: TrainingArguments(bf16=True).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/value.h"

namespace unidle::knobs {

/// An argument of the call, and what sets a knob with it.
struct FrameworkArgument {
  std::string knob;
  std::string value;  // of the knob, as text; empty: any
  std::string argument;
  std::string literal = {};  // in Python; empty: the knob's value itself
};

struct FrameworkCall {
  std::string source;                       // version and place where the arguments were read
  std::vector<std::string_view> packages;   // a program that uses it imports one of these
  std::vector<std::string_view> functions;  // as they are called
  std::vector<FrameworkArgument> arguments;

  /// nullptr when no argument sets the knob to the value.
  const FrameworkArgument* find(std::string_view knob, const Value& value) const;
};

const std::vector<FrameworkCall>& framework_calls();

}  // namespace unidle::knobs
