// Reads the arguments of `unidle run --apply`.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/settings.h"

namespace unidle::knobs {

/// Settings from arguments of the form KNOB=VALUE or configuration files whose keys are knobs; later ones win. Throws
/// kUsage for an unknown knob or an invalid value (subject: the argument, or "file:line: key"), kInput for a file that
/// cannot be read.
Settings apply_settings(const std::vector<std::string>& arguments);

}  // namespace unidle::knobs
