// Finds knobs on a command line: --num-workers 4, --batch_size=8, trainer.precision=16, OMP_NUM_THREADS=4.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

struct CommandSetting {
  std::string knob;
  Meaning meaning = Meaning::kValue;
  Phase phase = Phase::kTraining;
  std::string spelling;        // the flag, override or variable, without its value
  std::string value;           // empty for a flag without a value
  std::optional<Value> means;  // the knob's value
  std::size_t index = 0;       // of the word with the value, or of the flag without one
};

/// All knobs that the words of a command set, in order. A setting is a flag followed by its value or joined to it by an
/// equals sign, a Hydra override (a.b=c, +a.b=c, ++a.b=c), or a variable before the program (env NAME=VALUE CMD).
std::vector<CommandSetting> recognize_command(const std::vector<std::string>& argv);

/// The command with the training side of `knob` set to `value`; nothing when no word of the command sets that knob, or
/// its spelling has no word for the value. Removes a flag without a value to switch it off; never adds one, because a
/// program that does not know the flag would not start.
std::optional<std::vector<std::string>> apply_to_command(const std::vector<std::string>& argv, std::string_view knob,
                                                         const Value& value);

}  // namespace unidle::knobs
