// What a record says about each knob: as configured, and as the live program had it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/account/run_data.h"

namespace unidle::account {

/// Values are in the words of the program. Plain data.
struct KnobReading {
  std::optional<std::string> configured;
  std::string configured_at;             // file:line, or the word of the command
  std::optional<std::string> effective;  // as the live program reported it
  /// Variables whose names match the knob, with their values.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string unnamed_key = {};   // the configured key, when no file of the program contains its name
  std::string effective_at = {};  // file:line of the call that set the live value, where that was seen
  std::string written = {};       // key and value as the file has them: "num_workers: 24"; empty if unknown

  bool has_value() const { return configured || effective; }
};

/// By name of the knob. If a record says something twice, the last one counts.
using KnobReadings = std::map<std::string, KnobReading>;
KnobReadings knob_readings(const RunData& run);

}  // namespace unidle::account
