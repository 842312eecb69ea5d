#include "unidle/diagnose/configured/configured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/diagnose/configured/argument_words.h"
#include "unidle/diagnose/configured/changed_names.h"
#include "unidle/diagnose/configured/configured_files.h"
#include "unidle/diagnose/configured/device_asked.h"
#include "unidle/knobs/command_line.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/recognize.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kAmp = "precision.amp";

/// True when the live program's value can be compared with the configured one.
bool comparable(std::string_view name) {
  const knobs::Knob* knob = knobs::find_knob(name);
  return knob != nullptr && knob->compared;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto in_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) {
      return true;
    }
  }
  return false;
}

/// False when the scripts cannot have read the key `path`: none contains its last part as a word, and none passes keys
/// on by ** or setattr.
bool may_be_read(const std::string& scripts, const std::string& path) {
  return scripts.empty() || scripts.find("**") != std::string::npos || scripts.find("setattr") != std::string::npos ||
         has_word(scripts, path.substr(path.find_last_of("./") + 1));
}

struct ConfiguredValue {
  record::Setting setting;
  std::string unnamed_key = {};  // set when no script can have read it
  std::string argument = {};     // the argument of the program's parser that may set the same knob
  std::string value_origin =
      {};                     // where its value comes from: "default" of that argument, "word" of the command, "file"
  std::string constant = {};  // the script's constant, which the program may change
  std::string written = {};   // key and value as the file has them
};
/// What one source of settings sets. A knob whose value cannot be determined maps to nothing.
using Layer = std::map<std::string, std::optional<ConfiguredValue>>;

bool is_true(std::string_view value) { return parse_bool(value) == true; }

/// "amp: true" leaves the format to the program, but requests mixed precision: a diagnosis can say that it stayed off.
std::optional<knobs::Configured> amp_switched_on(const knobs::Recognition& recognition) {
  std::optional<knobs::Configured> on;
  for (const knobs::Recognized& one : recognition.knobs) {
    if (one.knob == kAmp && one.phase == knobs::Phase::kTraining) {
      if (one.meaning != knobs::Meaning::kSwitch || !is_true(one.value)) {
        return std::nullopt;
      }
      on = on ? on : knobs::Configured{true, one.path, one.line};
    }
  }
  return on;
}

knobs::Meaning means(const knobs::Recognition& recognition, const std::string& path) {
  const auto found = std::find_if(recognition.knobs.begin(), recognition.knobs.end(),
                                  [&](const knobs::Recognized& one) { return one.path == path; });
  return found == recognition.knobs.end() ? knobs::Meaning::kValue : found->meaning;
}

/// amp_dtype names only the format for mixed precision; it does not switch it on.
bool is_format_without_switch(const knobs::Recognition& recognition, const std::string& path) {
  const std::string name = argument_name(path);
  const bool of_amp = name.find("amp") != std::string::npos || name.find("autocast") != std::string::npos;
  const bool has_switch = std::any_of(
      recognition.knobs.begin(), recognition.knobs.end(),
      [](const knobs::Recognized& one) { return one.knob == kAmp && one.meaning == knobs::Meaning::kSwitch; });
  return of_amp && !has_switch && means(recognition, path) == knobs::Meaning::kFormat;
}

/// `scripts`: the text of the program's scripts.
Layer from_files(const std::vector<fs::path>& files, const fs::path& folder, const std::string& scripts) {
  Layer layer;
  for (const fs::path& file : files) {
    try {
      const knobs::ConfigFile config = knobs::ConfigFile::load(file);
      const knobs::Recognition recognition = knobs::recognize(config);
      auto told = knobs::configured(recognition);
      if (const auto on = amp_switched_on(recognition)) {
        told.emplace(kAmp, *on);
      }
      if (const auto amp = told.find(std::string(kAmp));
          amp != told.end() && is_format_without_switch(recognition, amp->second.path)) {
        told.erase(amp);
      }
      for (const knobs::Recognized& one : recognition.knobs) {
        if (one.phase == knobs::Phase::kTraining && !told.contains(one.knob)) {
          layer[one.knob] = std::nullopt;
        }
      }
      for (const auto& [knob, value] : told) {
        const std::string where = fmt::format("{}:{}", file.lexically_relative(folder).string(), value.line);
        ConfiguredValue one{{knob, value.value.to_text(), "configured", where},
                            may_be_read(scripts, value.path) ? "" : value.path};
        const knobs::Scalar* scalar = config.find(value.path);
        const bool is_default = scalar != nullptr && !scalar->argument.empty();
        const bool inverted = means(recognition, value.path) == knobs::Meaning::kInverted;
        if ((is_default || config.format() != knobs::Format::kPython) && !inverted) {
          one.argument = argument_name(value.path);
          one.value_origin = is_default ? "default" : "file";
        } else if (config.format() == knobs::Format::kPython) {
          one.constant = argument_name(value.path);
          one.argument = lower(one.constant);  // usually the default of the argument with that name
          one.value_origin = "file";
        }
        if (scalar != nullptr && !is_default) {
          one.written = fmt::format("{}: {}", value.path.substr(value.path.rfind('.') + 1), scalar->value);
        }
        if (!one.constant.empty() && one.constant == value.path && is_changed(config.text(), one.constant)) {
          layer[knob] = std::nullopt;
          continue;
        }
        const auto [known, added] = layer.try_emplace(knob, std::move(one));
        if (!added && known->second && known->second->setting.value != value.value.to_text()) {
          known->second.reset();
        }
      }
    } catch (const std::exception&) {
      continue;  // the program itself complains if it reads the file
    }
  }
  return layer;
}

Layer from_command(const std::vector<std::string>& command) {
  Layer layer;
  for (const knobs::CommandSetting& setting : knobs::recognize_command(command)) {
    if (setting.phase == knobs::Phase::kTraining) {
      const bool plain = setting.means && setting.meaning == knobs::Meaning::kValue;
      const bool amp_on = setting.knob == kAmp && setting.meaning == knobs::Meaning::kSwitch &&
                          (setting.value.empty() || is_true(setting.value));
      const std::string value = plain ? setting.means->to_text() : "true";
      ConfiguredValue one{{setting.knob, value, "configured", setting.spelling}};
      one.argument = argument_name(setting.spelling);
      one.value_origin = "word";
      auto& told = layer[setting.knob];
      // A repeated option overrides itself, but two different options for one knob are ambiguous.
      const bool other = told && told->argument != one.argument && told->setting.value != value;
      told = (plain || amp_on) && !other ? std::optional(std::move(one)) : std::nullopt;
    }
  }
  return layer;
}

/// Scripts are not searched: a default applies only where nobody asks.
std::optional<record::Setting> device_asked(const std::vector<std::string>& command, const std::vector<fs::path>& files,
                                            const fs::path& folder) {
  std::optional<record::Setting> asked = device_of_command(command);
  for (auto file = files.begin(); !asked && file != files.end(); ++file) {
    try {
      asked = device_of_file(knobs::ConfigFile::load(*file), file->lexically_relative(folder).string());
    } catch (const std::exception&) {
      continue;  // the program itself complains if it reads the file
    }
  }
  return asked;
}

}  // namespace

std::vector<record::Setting> configured_settings(const std::vector<std::string>& command, const fs::path& folder) {
  const ConfiguredFiles files = configured_files(command, folder);
  const std::string scripts = text_of_scripts(files);
  Layer settings = from_command(command);
  settings.merge(from_files(files.configurations, folder, scripts));
  settings.merge(from_files(files.scripts, folder, ""));
  std::vector<record::Setting> found;
  for (const auto& [knob, told] : settings) {
    if (!comparable(knob) || !told || is_reassigned(scripts, told->argument) ||
        is_reassigned(scripts, told->constant)) {
      continue;
    }
    found.push_back(told->setting);
    if (!told->written.empty()) {
      found.push_back({knob, told->written, "written", told->setting.location});
    }
    if (!told->unnamed_key.empty()) {
      found.push_back({knob, told->setting.value, "unnamed", told->unnamed_key});
    }
    if (!told->argument.empty()) {
      found.push_back({knob, told->value_origin, "argument", told->argument});
    }
  }
  if (auto device = device_asked(command, files.configurations, folder)) {
    found.push_back(std::move(*device));
  }
  return found;
}

std::vector<record::Setting> environment_settings(const std::vector<std::string>& environment) {
  std::vector<record::Setting> found = gpus_hidden_by(environment);
  for (const std::string& entry : environment) {
    // OMP_NUM_THREADS is a known variable; BATCH_SIZE is recognised like a flag.
    const std::string name = entry.substr(0, entry.find('='));
    const std::string flag = lower(name) + entry.substr(name.size());
    for (const knobs::CommandSetting& one : knobs::recognize_command({"env", entry, "program", flag})) {
      if (one.means && one.meaning == knobs::Meaning::kValue && comparable(one.knob)) {
        found.push_back({one.knob, one.means->to_text(), "environment", name});
        break;
      }
    }
  }
  return found;
}

std::vector<record::Setting> configured_run_settings(const std::vector<std::string>& command, const fs::path& folder,
                                                     const std::vector<std::string>& environment,
                                                     const knobs::Settings& overruled) {
  std::vector<record::Setting> settings;
  try {
    settings = configured_settings(command, folder);
    const std::vector<record::Setting> variables = environment_settings(environment);
    settings.insert(settings.end(), variables.begin(), variables.end());
    std::erase_if(settings, [&](const record::Setting& one) { return overruled.contains(one.knob); });
  } catch (const std::exception& failure) {
    spdlog::warn("what is configured is not recorded: {}", failure.what());
  }
  return settings;
}

}  // namespace unidle::diagnose
