#include "unidle/tune/reach.h"

#include "unidle/diagnose/run_time.h"
#include "unidle/knobs/command_line.h"

namespace unidle::tune {

bool applies_at_run_time(const std::string& knob, const std::string& value) {
  if (value == "graph") {
    return false;  // the addresses of a captured step are the program's own business
  }
  return diagnose::applies_at_run_time(knob);
}

std::vector<std::string> with_spare(std::vector<std::string> command, const SpareOptions& spare,
                                    const Settings& changes) {
  for (const auto& [knob, words] : spare) {
    if (changes.contains(knob) && !knobs::apply_to_command(command, knob, changes.at(knob))) {
      command.insert(command.end(), words.begin(), words.end());
    }
  }
  return command;
}

Reach reach(const std::vector<std::string>& command, const Settings& changes) {
  Reach found{command, {}};
  for (const auto& [knob, value] : changes) {
    // A program that has a word for fp16 has a scaler of its own; one that says how often it logs reads no oftener.
    const bool own_word = value == "fp16" || knob == "metrics.interval";
    const bool from_outside = applies_at_run_time(knob, value) && !own_word;
    auto spelled = from_outside ? std::nullopt : knobs::apply_to_command(found.command, knob, value);
    if (spelled) {
      found.command = std::move(*spelled);
    } else {
      found.at_run_time[knob] = value;
    }
  }
  return found;
}

bool reaches(const std::vector<std::string>& command, const std::string& knob, const std::string& value) {
  return applies_at_run_time(knob, value) || knobs::apply_to_command(command, knob, value).has_value();
}

}  // namespace unidle::tune
