#include "unidle/tune/trials/trial_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "unidle/account/knob_readings.h"
#include "unidle/base/json.h"
#include "unidle/base/secrets.h"
#include "unidle/knobs/command_line.h"
#include "unidle/knobs/knob.h"
#include "unidle/record/note_types.h"

namespace unidle::tune {

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

std::map<long long, double> losses_of(const account::Account& account) {
  std::map<long long, double> losses;
  for (const account::CurvePoint& point : account.losses.points) {
    losses[std::llround(point.samples)] = point.value;
  }
  for (const double samples : account.losses.not_finite) {
    losses[std::llround(samples)] = std::numeric_limits<double>::quiet_NaN();
  }
  return losses;
}

ReportedSettings effective_settings(const account::RunData& run) {
  ReportedSettings effective;
  for (const auto& [knob, reading] : account::knob_readings(run)) {
    if (reading.effective) {
      effective[knob] = *reading.effective;
    }
  }
  return effective;
}

knobs::Settings known_settings(const ReportedSettings& reported) {
  knobs::Settings settings;
  for (const auto& [name, text] : reported) {
    const knobs::Knob* knob = knobs::find_knob(name);
    if (const auto value = knob == nullptr ? std::nullopt : knobs::parse_value(*knob, text)) {
      settings.set(name, *value);
    }
  }
  return settings;
}

knobs::OptionChoices option_choices(const account::RunData& run) {
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

knobs::OmittedOptions omitted_options(const account::RunData& run, const std::vector<std::string>& command,
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

bool lengths_vary(const account::RunData& run) {
  bool vary = false;
  record::each_note<record::NoteType::kShapes>(
      run.notes, [&](const auto& note) { vary = vary || note.whole("distinct").value_or(0) > 2; });
  return vary;
}

std::string longest_in(const account::RunData& run) {
  std::string found;
  std::int64_t largest = 0;
  record::each_note<record::NoteType::kLongest>(run.notes, [&](const auto& note) {
    if (const std::int64_t longest = note.whole("longest").value_or(0); longest > largest) {
      largest = longest;
      found = fmt::format("{} of {} samples in one batch, up to {} values each where the usual one has {}",
                          note.whole("batch").value_or(0), note.whole("samples").value_or(0), largest,
                          note.whole("usual").value_or(0));
    }
  });
  return found;
}

bool read_trial(const account::RunData& run, experiment::LossScale& scale, TrialResult& result) {
  const account::Account account = account::account_of(run);
  const std::size_t steps = account.timeline.steps.size();
  result.rate = steps < kLeastSteps ? 0 : account.rates.total.value_or(0);
  result.ok = result.rate > 0;
  if (!result.ok) {
    result.problem = fmt::format("only {} training steps were seen in {:.0f} s", steps, result.seconds);
    return false;
  }
  result.step_rate = account.rates.training;
  result.losses = losses_of(account);
  result.read_loss(scale);
  result.effective = effective_settings(run);
  result.others_cpus = account.cpus.others;
  result.own_cpus = account.cpus.own;
  result.lengths_vary = lengths_vary(run);
  result.longest = longest_in(run);
  return true;
}

}  // namespace unidle::tune
