#include "unidle/tune/trials/trial_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "unidle/base/clock.h"
#include "unidle/base/json.h"
#include "unidle/base/secrets.h"
#include "unidle/base/stats.h"
#include "unidle/knobs/command_line.h"
#include "unidle/record/note_types.h"

namespace unidle::tune {

namespace {

constexpr double kWarmupShare = 0.25;

double rate_of_process(const std::vector<record::Step>& steps) {
  const auto skip = static_cast<std::size_t>(static_cast<double>(steps.size()) * kWarmupShare);
  double samples = 0;
  for (std::size_t i = skip; i < steps.size(); ++i) {
    samples += static_cast<double>(steps[i].samples);
  }
  const record::Step& last = steps.back();
  const double time_s = seconds(last.t_ns + last.duration_ns - steps[skip].t_ns);
  return time_s > 0 ? samples / time_s : 0;
}

/// Texts of a list; what is none is left out.
std::vector<std::string> texts_in(const nlohmann::json& list) {
  std::vector<std::string> texts;
  for (const nlohmann::json& each : list.is_array() ? list : nlohmann::json::array()) {
    if (each.is_string()) {
      texts.push_back(each.get<std::string>());
    }
  }
  return texts;
}

/// `body` is of the program that the end of the command starts: train.py with its words, or -m of a module.
bool is_of_command(const nlohmann::json& body, const std::vector<std::string>& command) {
  const std::vector<std::string> masked = mask_secrets(command);  // as the record has it
  const auto words = texts_in(body.value("words", nlohmann::json::array()));
  if (words.size() >= command.size() || !std::equal(words.rbegin(), words.rend(), masked.rbegin())) {
    return false;
  }
  const std::string& script = command[command.size() - words.size() - 1];
  const std::string program = std::filesystem::path(text_in(body, "program")).filename();
  return program == std::filesystem::path(script).filename() || program == script.substr(script.rfind('.') + 1) + ".py";
}

/// What one option sets in training, where that is one knob.
std::optional<knobs::CommandSetting> knob_of(const std::vector<std::string>& option) {
  const auto found = knobs::recognize_command(option);
  const bool one = option.size() == 2 && found.size() == 1 && found.front().phase == knobs::Phase::kTraining &&
                   found.front().meaning == knobs::Meaning::kValue && found.front().canonical;
  return one ? std::optional(found.front()) : std::nullopt;
}

}  // namespace

double rate_after_warmup(const std::vector<record::Step>& steps) {
  std::map<std::int64_t, std::vector<record::Step>> by_process;
  for (const record::Step& step : steps) {
    by_process[step.process].push_back(step);
  }
  double rate = 0;
  for (const auto& [process, own] : by_process) {
    rate += rate_of_process(own);
  }
  return rate;
}

/// A loss that is read back long after its step is recorded as a metric.
std::map<long long, double> losses_of(const record::Reader& reader, const std::vector<record::Step>& steps) {
  std::map<long long, double> losses;
  for (const record::Metric& metric : reader.metrics("loss")) {
    losses[metric.samples] = metric.value;
  }
  long long seen = 0;
  for (const record::Step& step : steps) {
    if (step.process != steps.front().process) {
      continue;
    }
    if (step.loss) {
      losses[step.samples_before.value_or(seen)] = *step.loss;
    }
    seen += step.samples;
  }
  return losses;
}

std::optional<double> others_cpus(const record::Reader& reader) {
  std::map<std::string, std::vector<double>> values;
  for (const record::Series& series : reader.all_series()) {
    if (series.name == record::series::kHostCpu || series.name == record::series::kTreeCpu) {
      for (const record::Point& point : reader.points(series)) {
        values[series.name].push_back(point.value);
      }
    }
  }
  const auto& host = values[std::string(record::series::kHostCpu)];
  const auto& tree = values[std::string(record::series::kTreeCpu)];
  if (host.empty() || tree.empty()) {
    return std::nullopt;
  }
  return std::max(0.0, mean(host) - mean(tree));
}

knobs::Settings effective_settings(const record::Reader& reader) {
  knobs::Settings effective;
  for (const record::Setting& setting : reader.settings()) {
    if (setting.source == "effective") {
      effective[setting.knob] = setting.value;
    }
  }
  return effective;
}

OptionChoices option_choices(const record::Reader& reader) {
  OptionChoices choices;
  for (const record::Note& note : reader.notes()) {
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

SpareOptions spare_options(const record::Reader& reader, const std::vector<std::string>& command,
                           const knobs::Settings& effective) {
  SpareOptions spare;
  std::set<std::string> unclear;
  for (const record::Note& note : reader.notes()) {
    if (!record::is_of(note, record::NoteType::kOptions) || !is_of_command(note.body, command)) {
      continue;
    }
    for (const nlohmann::json& each : note.body.value("options", nlohmann::json::array())) {
      const std::vector<std::string> option = texts_in(each);
      const auto setting = knob_of(option);
      if (!setting) {
        continue;
      }
      const auto live = effective.find(setting->knob);
      const bool other = live != effective.end() && live->second != *setting->canonical;  // it means something else
      const auto known = spare.emplace(setting->knob, option).first;
      if (other || known->second != option) {
        unclear.insert(setting->knob);
      }
    }
  }
  std::erase_if(spare, [&](const auto& entry) { return unclear.contains(entry.first); });
  return spare;
}

bool lengths_vary(const record::Reader& reader) {
  bool vary = false;
  record::each_note<record::NoteType::kShapes>(
      reader.notes(), [&](const auto& note) { vary = vary || note.whole("distinct").value_or(0) > 2; });
  return vary;
}

std::string longest_in(const record::Reader& reader) {
  std::string found;
  std::int64_t largest = 0;
  record::each_note<record::NoteType::kLongest>(reader.notes(), [&](const auto& note) {
    if (const std::int64_t longest = note.whole("longest").value_or(0); longest > largest) {
      largest = longest;
      found = fmt::format("{} of {} samples in one batch, up to {} values each where the usual one has {}",
                          note.whole("batch").value_or(0), note.whole("samples").value_or(0), largest,
                          note.whole("usual").value_or(0));
    }
  });
  return found;
}

bool take_in(const record::Reader& reader, experiment::LossScale& scale, TrialResult& result) {
  const std::vector<record::Step> steps = reader.steps();
  result.rate = steps.size() < kLeastSteps ? 0 : rate_after_warmup(steps);
  result.ok = result.rate > 0;
  if (!result.ok) {
    result.problem = fmt::format("only {} training steps were seen in {:.0f} s", steps.size(), result.seconds);
    return false;
  }
  result.losses = losses_of(reader, steps);
  result.read_loss(scale);
  result.effective = effective_settings(reader);
  result.others_cpus = others_cpus(reader);
  result.lengths_vary = lengths_vary(reader);
  result.longest = longest_in(reader);
  return true;
}

}  // namespace unidle::tune
