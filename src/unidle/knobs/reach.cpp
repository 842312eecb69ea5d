#include "unidle/knobs/reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/secrets.h"
#include "unidle/base/shell.h"
#include "unidle/knobs/command_line.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

namespace {

/// `words` with the knob's option set to `value`, appended if the command omits it; nothing when no option can say it.
std::optional<std::vector<std::string>> with_option(const ProgramCommand& program, std::vector<std::string> words,
                                                    const std::string& knob, const Value& value) {
  auto spelled = apply_to_command(words, knob, value);
  if (const auto omitted = program.omitted.find(knob); !spelled && omitted != program.omitted.end()) {
    words.insert(words.end(), omitted->second.begin(), omitted->second.end());
    spelled = apply_to_command(words, knob, value);
  }
  return spelled;
}

/// True when the program's option for the knob sets what is in effect, so it would say the opposite of a change at run
/// time.
bool is_governed(const ProgramCommand& program, const std::string& knob) {
  const Value* live = program.in_effect.find(knob);
  return live != nullptr && value_said(program, knob) == *live;
}

/// True when the program logs more often than `changes` wants.
bool logs_more_often(const ProgramCommand& program, const Settings& changes) {
  const auto said = value_said(program, "metrics.interval");
  const auto interval = said ? said->integer() : std::nullopt;
  return interval && *interval < changes.integer("metrics.interval");
}

/// True when only one of batch size and accumulation has an option. Then neither is changed in the command, to keep the
/// effective batch.
bool only_one_has_an_option(const ProgramCommand& program, const Settings& changes) {
  const auto unsaid = [&](const char* knob) {
    return changes.contains(knob) && !with_option(program, program.words, knob, changes.at(knob));
  };
  return changes.contains("batch.size") && changes.contains("batch.accumulation") &&
         (unsaid("batch.size") || unsaid("batch.accumulation"));
}

}  // namespace

std::optional<Value> value_said(const ProgramCommand& program, const std::string& knob) {
  std::vector<std::string> words = program.words;
  if (const auto omitted = program.omitted.find(knob); omitted != program.omitted.end()) {
    words.insert(words.end(), omitted->second.begin(), omitted->second.end());
  }
  for (const CommandSetting& setting : recognize_command(words)) {
    const bool other = setting.meaning == Meaning::kGlobalBatch || setting.meaning == Meaning::kOption;
    if (setting.knob == knob && setting.phase == Phase::kTraining && !other) {
      return setting.means;
    }
  }
  return std::nullopt;
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

Reach reach(const ProgramCommand& program, const Settings& changes) {
  Reach found{program.words, {}};
  const bool batch_from_outside = only_one_has_an_option(program, changes);
  for (const auto& [knob, value] : changes) {
    // A program with an option for fp16 has its own gradient scaler.
    const bool by_option = value == "fp16" || is_governed(program, knob);
    const bool of_batch = knob == "batch.size" || knob == "batch.accumulation";
    const bool from_outside = of_batch ? batch_from_outside : applies_at_run_time(knob, value) && !by_option;
    const bool enough = knob == "metrics.interval" && !logs_more_often(program, changes);
    auto spelled = from_outside || enough ? std::nullopt : with_option(program, found.command, knob, value);
    if (spelled) {
      found.command = std::move(*spelled);
    } else {
      found.at_run_time.set(knob, value);
    }
  }
  return found;
}

bool reaches(const ProgramCommand& program, const std::string& knob, const Value& value) {
  return applies_at_run_time(knob, value) || reach(program, {{knob, value}}).at_run_time.empty();
}

std::string run_command(const ProgramCommand& program, const Settings& changes) {
  const Reach reached = reach(program, changes);
  std::string options = in_words(program.run_options, changes.names());
  for (const auto& [knob, value] : reached.at_run_time) {
    options += "--apply " + shell_quoted(pair_key(knob, value)) + " ";
  }
  return with_options(options, shell_joined(mask_secrets(reached.command)));
}

}  // namespace unidle::knobs
