// What a person would write in the program for a knob that was changed at run time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/tune/advice/advise.h"

namespace unidle::tune {

struct CodeChange {
  std::string knob;
  std::string where;  // file:line of the call; empty when it was not seen
  std::string code;
  std::string value;  // as Python writes it
  std::string near;   // file:line of the loader, or of the model's call; empty when neither was seen
};

/// One for each change that has a line of code. `places`: see ProgramPlan. `device`: of the run.
std::vector<CodeChange> code_changes(const std::vector<Change>& changes,
                                     const std::map<std::string, std::string>& places, const std::string& device);

/// `unidle run --apply ... -- CMD`, quoted for a shell; what CMD itself can say is said there.
std::string run_command(const knobs::Settings& changes, const std::vector<std::string>& command);

}  // namespace unidle::tune
