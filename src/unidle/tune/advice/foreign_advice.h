// Advice for configurations of other programs, from the file and the hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

struct ForeignAdvice {
  std::vector<Change> changes;
  std::vector<std::string> left;  // what was worth changing and could not be, with the reason
  std::string framework;
  std::size_t recognized = 0;  // settings that are knobs
};

/// Edits `config` in its own words. Only settings that the file has, or that its framework is known to read; exact
/// knobs in every profile, numeric ones from balanced on, with fast also those that help most programs but not all. The
/// effective batch stays what it is.
ForeignAdvice advise_foreign(knobs::ConfigFile& config, const Hardware& hardware, Profile profile);

}  // namespace unidle::tune
