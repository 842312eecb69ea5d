// Options of the program's own parser.
#pragma once

#include <string>
#include <vector>

#include "unidle/account/run_data.h"
#include "unidle/knobs/reach.h"
#include "unidle/knobs/settings.h"

namespace unidle::account {

/// Allowed values of the program's options, if its parser lists them.
knobs::OptionChoices option_choices(const RunData& run);

/// Options that the program reported and that set a knob as the command could. A report counts when it is from the
/// program at the end of the command, and for options whose value is in effect.
knobs::OmittedOptions omitted_options(const RunData& run, const std::vector<std::string>& command,
                                      const knobs::Settings& effective);

/// The same for options without a value: what they switch on.
knobs::OmittedSwitches omitted_switches(const RunData& run, const std::vector<std::string>& command);

}  // namespace unidle::account
