// The calls of a Python program whose arguments set a knob.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/python_edit.h"
#include "unidle/knobs/value.h"

namespace unidle::knobs {

/// An argument that sets a knob, and the functions that have it.
struct SettingCall {
  std::vector<std::string_view> functions;
  std::string argument;
  bool may_be_second = false;       // it may also be given without a name, as the second argument
  bool may_be_alone = false;        // where its line is unknown, the only such call of a file is meant
  std::size_t most_positional = 9;  // with more of them, the argument may be given without its name

  /// On line `line`; for 0, the only one of the file if that is enough. Nothing when there is none, or several.
  std::optional<PythonSource::Call> find(const PythonSource& source, int line) const;
  PythonSource::Given given(const PythonSource& source, PythonSource::Call call) const;
  /// The text with the argument set; nothing when that is not certain.
  std::optional<std::string> with(const PythonSource& source, PythonSource::Call call, std::string_view value) const;
};

/// Nothing when no argument of a call sets the knob. `of_package`: the loader is of the package unidle.
std::optional<SettingCall> setting_call(std::string_view knob, bool of_package);

/// The value as a Python literal, apart from the quotes of a word: True, 4, bf16.
std::string python_value(const Value& value);

}  // namespace unidle::knobs
