// How changed settings reach a program that is not ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// Options that a program takes but its command leaves out, with the values in effect, by knob: {"--batch-size", "64"}.
using SpareOptions = std::map<std::string, std::vector<std::string>>;

/// The command with those of `spare` behind it that `changes` needs. The program still does what it did.
std::vector<std::string> with_spare(std::vector<std::string> command, const SpareOptions& spare,
                                    const knobs::Settings& changes);

/// The values that options of a program may have where it lists them, by the option without dashes: "batch_size".
using OptionChoices = std::map<std::string, std::vector<std::string>>;

/// Why the program would refuse the command: its first option with a value that is none of the choices. Empty where
/// there is none.
std::string why_refused(const std::vector<std::string>& command, const OptionChoices& choices);

struct Reach {
  std::vector<std::string> command;
  knobs::Settings at_run_time;  // for UNIDLE_APPLY
};

/// What cannot be changed in a running program but is set by a word of its command (--batch-size 4) is changed there,
/// and so are fp16 and how often the loss is logged; all else is left for the shim, which says why not where it cannot.
/// Batch size and accumulation, where both change, are both changed by words or both at run time.
Reach reach(const std::vector<std::string>& command, const knobs::Settings& changes);

/// True when `changes` reaches the program one way or the other.
bool reaches(const std::vector<std::string>& command, const std::string& knob, const std::string& value);

}  // namespace unidle::tune
