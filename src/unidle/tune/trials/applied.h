// What became of the settings that a running program was asked to change.
#pragma once

#include <map>
#include <string>

#include "unidle/knobs/settings.h"
#include "unidle/record/record.h"

namespace unidle::tune {

struct Applied {
  bool taken = false;  // read back from the live program
  std::string why;     // not; empty when taken
};

/// Of each knob in `asked`, what the shim said: the worst where several processes said something. Of several datasets
/// some may have what a knob needs and others not: then one that has it is enough.
std::map<std::string, Applied> applied_settings(const record::Reader& reader, const knobs::Settings& asked);

}  // namespace unidle::tune
