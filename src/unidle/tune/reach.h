// How changed settings reach a program that is not ours.
#pragma once

#include <string>
#include <vector>

#include "unidle/tune/settings.h"

namespace unidle::tune {

/// True for knobs and values that the shim can set in a running program.
bool applies_at_run_time(const std::string& knob, const std::string& value);

struct Reach {
  std::vector<std::string> command;
  Settings at_run_time;  // for UNIDLE_APPLY
};

/// What cannot be changed in a running program but is set by a word of its command (--batch-size 4) is changed there,
/// and so are fp16 and how often the loss is logged; all else is left for the shim, which says why not where it cannot.
Reach reach(const std::vector<std::string>& command, const Settings& changes);

/// True when `changes` reaches the program one way or the other.
bool reaches(const std::vector<std::string>& command, const std::string& knob, const std::string& value);

}  // namespace unidle::tune
