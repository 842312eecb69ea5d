// Advice on configurations of other programs, from file and hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/tune/advice/advise.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

struct ForeignAdvice {
  std::vector<knobs::Change> changes;
  std::vector<std::string> left;  // worthwhile changes that were not possible, with the reason
  std::string framework;
  std::size_t recognized = 0;  // number of settings that are knobs
};

/// Edits `config` in the file's own vocabulary. Changes only settings that the file has or that its framework is known
/// to read: exact knobs in every profile, numeric ones from balanced on, and with fast also those that help most
/// programs but not all. The effective batch stays the same.
ForeignAdvice advise_foreign(knobs::ConfigFile& config, const Hardware& hardware, Profile profile);

}  // namespace unidle::tune
