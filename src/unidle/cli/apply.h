// What `unidle run --apply` asks for, and how it reaches the program.
#pragma once

#include <string>
#include <vector>

namespace unidle::cli {

/// The JSON object for UNIDLE_APPLY out of arguments that are KNOB=VALUE or a configuration file whose keys are knobs;
/// later ones win. "" when `arguments` is empty. Throws kUsage for an unknown knob or a value that it does not take
/// (subject: the argument, or "file:line: key"), kInput for a file that cannot be read.
std::string apply_json(const std::vector<std::string>& arguments);

}  // namespace unidle::cli
