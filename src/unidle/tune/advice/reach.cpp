#include "unidle/tune/advice/reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/knobs/command_line.h"
#include "unidle/knobs/knob.h"

namespace unidle::tune {

namespace {

/// True when the command sets a logging interval shorter than the one in `changes`.
bool logs_more_often(const std::vector<std::string>& command, const knobs::Settings& changes) {
  const auto settings = knobs::recognize_command(command);
  return std::ranges::any_of(settings, [&](const knobs::CommandSetting& setting) {
    const auto said = setting.means ? setting.means->integer() : std::nullopt;
    return setting.knob == "metrics.interval" && said && *said < changes.integer("metrics.interval");
  });
}

/// True when the command has a word for only one of batch size and accumulation. Then neither is changed in the
/// command, to keep the effective batch.
bool only_one_in_command(const std::vector<std::string>& command, const knobs::Settings& changes) {
  const auto unsaid = [&](const char* knob) {
    return changes.contains(knob) && !knobs::apply_to_command(command, knob, changes.at(knob));
  };
  return changes.contains("batch.size") && changes.contains("batch.accumulation") &&
         (unsaid("batch.size") || unsaid("batch.accumulation"));
}

}  // namespace

std::vector<std::string> with_omitted_options(std::vector<std::string> command, const OmittedOptions& omitted,
                                              const knobs::Settings& changes) {
  for (const auto& [knob, words] : omitted) {
    if (changes.contains(knob) && !knobs::apply_to_command(command, knob, changes.at(knob))) {
      command.insert(command.end(), words.begin(), words.end());
    }
  }
  return command;
}

std::string why_refused(const std::vector<std::string>& command, const OptionChoices& choices) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    const auto known = word.starts_with('-') ? choices.find(name) : choices.end();
    if (known == choices.end() || (equals == std::string::npos && i + 1 == command.size())) {
      continue;
    }
    const std::string value = equals == std::string::npos ? command[i + 1] : word.substr(equals + 1);
    if (std::find(known->second.begin(), known->second.end(), value) == known->second.end()) {
      return fmt::format("{} accepts {}; {} is not one of them", word.substr(0, equals), fmt::join(known->second, ", "),
                         value);
    }
  }
  return "";
}

Reach reach(const std::vector<std::string>& command, const knobs::Settings& changes) {
  Reach found{command, {}};
  const bool batch_from_outside = only_one_in_command(command, changes);
  for (const auto& [knob, value] : changes) {
    // A program with an option for fp16 has its own gradient scaler.
    const bool own_word = value == "fp16";
    const bool of_batch = knob == "batch.size" || knob == "batch.accumulation";
    const bool from_outside = of_batch ? batch_from_outside : knobs::applies_at_run_time(knob, value) && !own_word;
    const bool enough = knob == "metrics.interval" && !logs_more_often(found.command, changes);
    auto spelled = from_outside || enough ? std::nullopt : knobs::apply_to_command(found.command, knob, value);
    if (spelled) {
      found.command = std::move(*spelled);
    } else {
      found.at_run_time.set(knob, value);
    }
  }
  return found;
}

bool reaches(const std::vector<std::string>& command, const std::string& knob, const knobs::Value& value) {
  return knobs::applies_at_run_time(knob, value) || reach(command, {{knob, value}}).at_run_time.empty();
}

}  // namespace unidle::tune
