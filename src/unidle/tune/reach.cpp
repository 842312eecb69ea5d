#include "unidle/tune/reach.h"

#include <algorithm>

#include "unidle/diagnose/run_time.h"
#include "unidle/knobs/command_line.h"

namespace unidle::tune {

namespace {

/// A word of the command says how often the loss is logged, and that is oftener than `changes` want it.
bool logs_oftener(const std::vector<std::string>& command, const Settings& changes) {
  const auto settings = knobs::recognize_command(command);
  return std::any_of(settings.begin(), settings.end(), [&](const knobs::CommandSetting& setting) {
    const Settings said = {{setting.knob, setting.canonical.value_or("")}};
    return integer_of(said, "metrics.interval") &&
           integer_of(said, "metrics.interval") < integer_of(changes, "metrics.interval");
  });
}

/// Batch size and accumulation go together: the effective batch must not depend on which of the two has a word.
bool only_one_is_said(const std::vector<std::string>& command, const Settings& changes) {
  const auto unsaid = [&](const char* knob) {
    return changes.contains(knob) && !knobs::apply_to_command(command, knob, changes.at(knob));
  };
  return changes.contains("batch.size") && changes.contains("batch.accumulation") &&
         (unsaid("batch.size") || unsaid("batch.accumulation"));
}

}  // namespace

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
  const bool batch_from_outside = only_one_is_said(command, changes);
  for (const auto& [knob, value] : changes) {
    // A program that has a word for fp16 has a scaler of its own.
    const bool own_word = value == "fp16" || (knob == "metrics.interval" && logs_oftener(found.command, changes));
    const bool of_batch = knob == "batch.size" || knob == "batch.accumulation";
    const bool from_outside = of_batch ? batch_from_outside : applies_at_run_time(knob, value) && !own_word;
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
