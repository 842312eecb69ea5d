// How changed settings reach a foreign program.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// Options that the program accepts but the command omits, with their effective values, by knob: {"--batch-size",
/// "64"}.
using OmittedOptions = std::map<std::string, std::vector<std::string>>;

/// The command with the options of `omitted` that `changes` needs appended; its behaviour stays the same.
std::vector<std::string> with_omitted_options(std::vector<std::string> command, const OmittedOptions& omitted,
                                              const knobs::Settings& changes);

/// Allowed values of options that list them, by option name without dashes: "batch_size".
using OptionChoices = std::map<std::string, std::vector<std::string>>;

/// Why the program would reject the command: the first option whose value is not allowed. Empty when there is none.
std::string why_refused(const std::vector<std::string>& command, const OptionChoices& choices);

struct Reach {
  std::vector<std::string> command;
  knobs::Settings at_run_time;  // for UNIDLE_APPLY
};

/// Divides `changes` between the command and the running program. Knobs that cannot be changed at run time but have a
/// word in the command (--batch-size 4) are changed there, and so are fp16 and the logging interval. The shim gets the
/// rest, and reports what it cannot change. If both batch size and accumulation change, both go the same way.
Reach reach(const std::vector<std::string>& command, const knobs::Settings& changes);

/// True when `changes` can reach the program in either way.
bool reaches(const std::vector<std::string>& command, const std::string& knob, const knobs::Value& value);

}  // namespace unidle::tune
