// How changed settings reach a program: by the options of its command, or at run time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/run_options.h"
#include "unidle/knobs/settings.h"
#include "unidle/knobs/value.h"

namespace unidle::knobs {

/// Options that the program accepts but the command omits, with their effective values, by knob: {"--batch-size",
/// "64"}.
using OmittedOptions = std::map<std::string, std::vector<std::string>>;

/// An option without a value that a command omits: the value that it gives the knob, and its spelling.
struct OmittedSwitch {
  Value value;
  std::string option;  // "--bf16"
};
using OmittedSwitches = std::map<std::string, std::vector<OmittedSwitch>>;  // by knob

/// A command, and what is known of the program that it runs.
struct ProgramCommand {
  std::vector<std::string> words;
  Settings in_effect = {};  // when it runs as it is
  OmittedOptions omitted = {};
  RunOptions run_options = {};  // of the `unidle run` that ran it
};

/// The value that an option of the command, or an omitted one, sets for the knob in training.
std::optional<Value> value_said(const ProgramCommand& program, const std::string& knob);

/// Allowed values of options that list them, by option name without dashes: "batch_size".
using OptionChoices = std::map<std::string, std::vector<std::string>>;

/// Why the program would reject the command: the first option whose value is not allowed. Empty when there is none.
std::string why_refused(const std::vector<std::string>& command, const OptionChoices& choices);

struct Reach {
  std::vector<std::string> command;
  Settings at_run_time;  // for UNIDLE_APPLY
};

/// Divides `changes` between the command and the running program. An option, said or omitted, whose value is the one in
/// effect gets the new value: a change at run time would contradict it. So does an option of a knob that cannot be
/// changed at run time, and those of fp16 and the logging interval. The shim gets the rest, and reports what it cannot
/// change. If both batch size and accumulation change, both go the same way.
Reach reach(const ProgramCommand& program, const Settings& changes);

/// True when the change can reach the program in either way.
bool reaches(const ProgramCommand& program, const std::string& knob, const Value& value);

/// `unidle run --apply ... -- CMD`, quoted for a shell, with the program's run options; CMD alone when there are none
/// and its own options can express all changes.
std::string run_command(const ProgramCommand& program, const Settings& changes);

}  // namespace unidle::knobs
