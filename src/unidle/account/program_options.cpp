#include "unidle/account/program_options.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "unidle/base/json.h"
#include "unidle/base/secrets.h"
#include "unidle/knobs/command_line.h"
#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

/// The strings in a list; other elements are left out.
std::vector<std::string> texts_in(const nlohmann::json& list) {
  std::vector<std::string> texts;
  for (const nlohmann::json& each : list.is_array() ? list : nlohmann::json::array()) {
    if (each.is_string()) {
      texts.push_back(each.get<std::string>());
    }
  }
  return texts;
}

/// True when `body` describes the program at the end of the command: train.py with its arguments, or -m with a module.
bool is_of_command(const nlohmann::json& body, const std::vector<std::string>& command) {
  const std::vector<std::string> masked = mask_secrets(command);  // as in the record
  const auto words = texts_in(body.value("words", nlohmann::json::array()));
  if (words.size() >= command.size() || !std::equal(words.rbegin(), words.rend(), masked.rbegin())) {
    return false;
  }
  const std::string& script = command[command.size() - words.size() - 1];
  const std::string program = std::filesystem::path(text_in(body, "program")).filename();
  return program == std::filesystem::path(script).filename() || program == script.substr(script.rfind('.') + 1) + ".py";
}

/// The knob that one option sets in training, if it is exactly one.
std::optional<knobs::CommandSetting> knob_of(const std::vector<std::string>& option) {
  const auto found = knobs::recognize_command(option);
  const bool one = option.size() == 2 && found.size() == 1 && found.front().phase == knobs::Phase::kTraining &&
                   found.front().meaning == knobs::Meaning::kValue && found.front().means;
  return one ? std::optional(found.front()) : std::nullopt;
}

}  // namespace

knobs::OptionChoices option_choices(const RunData& run) {
  knobs::OptionChoices choices;
  for (const record::Note& note : run.notes) {
    if (!record::is_of(note, record::NoteType::kArguments)) {
      continue;
    }
    const nlohmann::json arguments = note.body.value("arguments", nlohmann::json::array());
    for (const nlohmann::json& each : arguments.is_array() ? arguments : nlohmann::json::array()) {
      const bool listed = each.is_object() && each.contains("choices") && each.contains("names");
      const auto values = listed ? texts_in(each["choices"]) : std::vector<std::string>{};
      for (const std::string& name : values.empty() ? std::vector<std::string>{} : texts_in(each["names"])) {
        choices[name] = values;
      }
    }
  }
  return choices;
}

knobs::OmittedOptions omitted_options(const RunData& run, const std::vector<std::string>& command,
                                      const knobs::Settings& effective) {
  knobs::OmittedOptions omitted;
  std::set<std::string> unclear;
  for (const record::Note& note : run.notes) {
    if (!record::is_of(note, record::NoteType::kOptions) || !is_of_command(note.body, command)) {
      continue;
    }
    for (const nlohmann::json& each : note.body.value("options", nlohmann::json::array())) {
      const std::vector<std::string> option = texts_in(each);
      const auto setting = knob_of(option);
      if (!setting) {
        continue;
      }
      const knobs::Value* live = effective.find(setting->knob);
      const bool other = live != nullptr && *live != *setting->means;  // it has another meaning
      const auto known = omitted.emplace(setting->knob, option).first;
      if (other || known->second != option) {
        unclear.insert(setting->knob);
      }
    }
  }
  std::erase_if(omitted, [&](const auto& entry) { return unclear.contains(entry.first); });
  return omitted;
}

knobs::OmittedSwitches omitted_switches(const RunData& run, const std::vector<std::string>& command) {
  knobs::OmittedSwitches switches;
  for (const record::Note& note : run.notes) {
    if (!record::is_of(note, record::NoteType::kOptions) || !is_of_command(note.body, command)) {
      continue;
    }
    for (const std::string& option : texts_in(note.body.value("switches", nlohmann::json::array()))) {
      const auto found = knobs::recognize_command({"program", option});
      if (found.size() == 1 && found.front().phase == knobs::Phase::kTraining && found.front().means) {
        switches[found.front().knob].push_back({*found.front().means, option});
      }
    }
  }
  return switches;
}

}  // namespace unidle::account
