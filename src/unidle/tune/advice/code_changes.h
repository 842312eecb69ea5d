// Lines of code that replace knobs changed at run time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/knobs/changed_lines.h"
#include "unidle/tune/advice/advise.h"

namespace unidle::tune {

/// A change as a line of Python at a place of the program: text to write, no value of a knob.
struct CodeChange {
  std::string knob;
  std::string where;  // file:line of the call; empty when not seen
  std::string code;
  std::string value = {};  // as a Python literal
  std::string near = {};   // file:line of the loader, else of the model's call; empty when neither was seen
  std::vector<knobs::ChangedLines> lines = {};  // of the file of `where`, where they are known
};

/// The code for each change that has some. `places`: see ProgramPlan. `device`: the run's device.
std::vector<CodeChange> code_changes(const std::vector<knobs::Change>& changes,
                                     const std::map<std::string, std::string>& places, const std::string& device);

}  // namespace unidle::tune
