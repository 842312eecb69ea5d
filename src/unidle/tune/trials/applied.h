// What happened to settings that a running program was asked to change.
#pragma once

#include <map>
#include <string>

#include "unidle/knobs/settings.h"
#include "unidle/record/record.h"

namespace unidle::tune {

struct Applied {
  bool taken = false;  // read back from the live program
  std::string why;     // why not, or not everywhere; empty when taken everywhere
};

/// The shim's report for each knob in `asked`: the worst of several processes. For a knob that needs a capability of a
/// dataset, one dataset that has it is enough.
std::map<std::string, Applied> applied_settings(const record::Reader& reader, const knobs::Settings& asked);

}  // namespace unidle::tune
