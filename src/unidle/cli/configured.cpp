#include "unidle/cli/configured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/files.h"
#include "unidle/base/numbers.h"
#include "unidle/cli/argument_words.h"
#include "unidle/knobs/command_line.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/recognize.h"

namespace unidle::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kAmp = "precision.amp";
constexpr std::uintmax_t kLargestConfig_bytes = 1 << 20;  // data in YAML or JSON is no configuration
constexpr std::size_t kMostFiles = 200;                   // looked at in a folder

bool is_configuration(const fs::path& path) {
  static constexpr std::array<std::string_view, 6> kEndings = {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"};
  const std::string ending = path.extension().string();
  std::error_code failure;
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() && fs::is_regular_file(path, failure) &&
         fs::file_size(path, failure) <= kLargestConfig_bytes && !failure;
}

/// The value in the live program can be compared with the one in a file.
bool comparable(std::string_view name) {
  const knobs::Knob* knob = knobs::find_knob(name);
  return knob != nullptr && knob->compared;
}

std::string text_of(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure) || fs::file_size(path, failure) > kLargestConfig_bytes || failure) {
    return "";
  }
  return read_file(path);
}

std::string text_of(const std::vector<fs::path>& files) {
  std::string texts;
  for (const fs::path& file : files) {
    texts += text_of(file);
  }
  return texts;
}

/// Files of one folder that `scripts` name.
void add_named(const fs::path& folder, const std::string& scripts, std::vector<fs::path>& files) {
  std::error_code failure;
  std::size_t looked_at = 0;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end && ++looked_at <= kMostFiles;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (scripts.find(name) != std::string::npos && is_configuration(entry->path())) {
      files.push_back(entry->path());
    }
  }
}

/// Where `python -m a.b` finds its module, when that is one of the program's own.
fs::path module_file(const fs::path& folder, std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  const fs::path package = folder / name / "__main__.py";
  std::error_code failure;
  return fs::is_regular_file(package, failure) ? package : folder / (name + ".py");
}

/// The first module that a line of Python imports, without a leading dot; empty when the line is no import.
std::string_view imported_module(std::string_view line) {
  const auto skip_blanks = [&line] {
    const std::size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
    line.remove_prefix(blanks);
    return blanks > 0;
  };
  skip_blanks();
  const std::size_t keyword = line.starts_with("from") ? 4 : line.starts_with("import") ? 6 : 0;
  line.remove_prefix(keyword);
  if (keyword == 0 || !skip_blanks()) {
    return {};
  }
  line.remove_prefix(line.starts_with('.') ? 1 : 0);
  const auto in_name = [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; };
  const auto end = std::find_if_not(line.begin(), line.end(), in_name);
  const bool begins_name = !line.empty() && (is_letter(line[0]) || line[0] == '_');
  return begins_name ? line.substr(0, static_cast<std::size_t>(end - line.begin())) : std::string_view();
}

/// Adds the modules in `folder` that the text of a script there imports.
void add_imported(const fs::path& folder, const std::string& text, std::vector<fs::path>& scripts) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view module = imported_module(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (module.empty() || scripts.size() >= kMostFiles) {
      continue;
    }
    const fs::path file = module_file(folder, std::string(module));
    std::error_code failure;
    if (fs::is_regular_file(file, failure)) {
      scripts.push_back(file);
    }
  }
}

void keep_first_of_equal(std::vector<fs::path>& files) {
  std::vector<fs::path> kept;
  for (const fs::path& file : files) {
    if (std::find(kept.begin(), kept.end(), file) == kept.end()) {
      kept.push_back(file);
    }
  }
  files = std::move(kept);
}

/// Hydra: model=large, +experiment=fast are files of that name in a folder of that name.
void add_group_of(const std::string& word, const fs::path& folder, std::vector<fs::path>& files) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || word.starts_with('-')) {
    return;
  }
  const std::size_t begin = std::min(word.find_first_not_of('+'), equals);
  const std::string group = word.substr(begin, word.find('@') < equals ? word.find('@') - begin : equals - begin);
  for (const char* inside : {"", "config", "configs", "conf"}) {
    const fs::path file = folder / inside / group / (word.substr(equals + 1) + ".yaml");
    if (is_configuration(file)) {
      files.push_back(file);
    }
  }
}

ConfiguredFiles find_files(const std::vector<std::string>& command, const fs::path& folder) {
  ConfiguredFiles files;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    const auto equals = word.find('=');
    const bool module = i > 0 && command[i - 1] == "-m";
    const fs::path path =
        module ? module_file(folder, word) : folder / (equals == std::string::npos ? word : word.substr(equals + 1));
    add_group_of(word, folder, files.configurations);
    if (path.extension() == ".py" && files.scripts.empty()) {
      files.scripts.push_back(path);
    } else if (is_configuration(path) || path.extension() == ".py") {
      files.configurations.push_back(path);
    }
  }
  if (!files.scripts.empty()) {
    const fs::path script = files.scripts.front();
    add_imported(script.parent_path(), text_of(script), files.scripts);
  }
  keep_first_of_equal(files.scripts);
  const std::string scripts = text_of(files.scripts);
  for (const char* inside : {"", "config", "configs", "conf"}) {
    add_named(folder / inside, scripts, files.configurations);
  }
  keep_first_of_equal(files.configurations);
  return files;
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

/// False where the program's scripts cannot have read the key `path`: none has its last part as a word, and none takes
/// keys as they come.
bool may_be_read(const std::string& scripts, const std::string& path) {
  return scripts.empty() || scripts.find("**") != std::string::npos || scripts.find("setattr") != std::string::npos ||
         has_word(scripts, path.substr(path.find_last_of("./") + 1));
}

struct Told {
  record::Setting setting;
  std::string unnamed_key = {};  // when the scripts cannot have read it
  std::string argument = {};     // of the program's own parser, which may say it too
  std::string said_by = {};      // "default" of that argument, "word" of the command, "file"
};
/// What one source of settings says: a knob that it sets in a way that cannot be told holds nothing.
using Layer = std::map<std::string, std::optional<Told>>;

bool is_true(std::string_view value) { return parse_bool(value) == true; }

/// "amp: true" leaves the format to the program, and is on all the same: that nothing came of it can be told.
std::optional<knobs::Configured> amp_switched_on(const knobs::Recognition& recognition) {
  std::optional<knobs::Configured> on;
  for (const knobs::Recognized& one : recognition.knobs) {
    if (one.knob == kAmp && one.phase == knobs::Phase::kTraining) {
      if (one.meaning != knobs::Meaning::kSwitch || !is_true(one.value)) {
        return std::nullopt;
      }
      on = on ? on : knobs::Configured{"true", one.path, one.line};
    }
  }
  return on;
}

knobs::Meaning means(const knobs::Recognition& recognition, const std::string& path) {
  const auto found = std::find_if(recognition.knobs.begin(), recognition.knobs.end(),
                                  [&](const knobs::Recognized& one) { return one.path == path; });
  return found == recognition.knobs.end() ? knobs::Meaning::kValue : found->meaning;
}

/// amp_dtype alone names the format that mixed precision would have, and not that it is on.
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
        told.try_emplace(std::string(kAmp), *on);
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
        Told one{{knob, value.value, "configured", where}, may_be_read(scripts, value.path) ? "" : value.path};
        const knobs::Scalar* scalar = config.find(value.path);
        const bool is_default = scalar != nullptr && !scalar->argument.empty();
        const bool inverted = means(recognition, value.path) == knobs::Meaning::kInverted;
        if ((is_default || config.format() != knobs::Format::kPython) && !inverted) {
          one.argument = argument_name(value.path);
          one.said_by = is_default ? "default" : "file";
        }
        const auto [known, added] = layer.try_emplace(knob, std::move(one));
        if (!added && known->second && known->second->setting.value != value.value) {
          known->second.reset();
        }
      }
    } catch (const std::exception&) {
      continue;  // not for us to complain about: the program will, if it reads it
    }
  }
  return layer;
}

std::string text_of_scripts(const ConfiguredFiles& files) {
  try {
    return text_of(files.scripts);
  } catch (const std::exception&) {
    return "";
  }
}

Layer from_command(const std::vector<std::string>& command) {
  Layer layer;
  for (const knobs::CommandSetting& setting : knobs::recognize_command(command)) {
    if (setting.phase == knobs::Phase::kTraining) {
      const bool plain = setting.canonical && setting.meaning == knobs::Meaning::kValue;
      const bool amp_on = setting.knob == kAmp && setting.meaning == knobs::Meaning::kSwitch &&
                          (setting.value.empty() || is_true(setting.value));
      const std::string value = plain ? *setting.canonical : "true";
      Told one{{setting.knob, value, "configured", setting.spelling}};
      one.argument = argument_name(setting.spelling);
      one.said_by = "word";
      auto& told = layer[setting.knob];
      // The last of several counts, but not where two options say one knob.
      const bool other = told && told->argument != one.argument && told->setting.value != value;
      told = (plain || amp_on) && !other ? std::optional(std::move(one)) : std::nullopt;
    }
  }
  return layer;
}

}  // namespace

ConfiguredFiles configured_files(const std::vector<std::string>& command, const fs::path& folder) {
  try {
    return find_files(command, folder);
  } catch (const std::exception&) {
    return {};  // a convenience; the run goes on without it
  }
}

std::vector<record::Setting> configured_settings(const std::vector<std::string>& command, const fs::path& folder) {
  const ConfiguredFiles files = configured_files(command, folder);
  const std::string scripts = text_of_scripts(files);
  Layer settings = from_command(with_long_options(command, scripts));
  settings.merge(from_files(files.configurations, folder, scripts));
  settings.merge(from_files(files.scripts, folder, ""));
  std::vector<record::Setting> found;
  for (const auto& [knob, told] : settings) {
    if (!comparable(knob) || !told || is_reassigned(scripts, told->argument)) {
      continue;
    }
    found.push_back(told->setting);
    if (!told->unnamed_key.empty()) {
      found.push_back({knob, told->setting.value, "unnamed", told->unnamed_key});
    }
    if (!told->argument.empty()) {
      found.push_back({knob, told->said_by, "argument", told->argument});
    }
  }
  return found;
}

std::vector<record::Setting> environment_settings(const std::vector<std::string>& environment) {
  std::vector<record::Setting> found;
  for (const std::string& entry : environment) {
    // OMP_NUM_THREADS is known as a variable, BATCH_SIZE reads like a flag.
    const std::string name = entry.substr(0, entry.find('='));
    std::string flag = entry;
    std::transform(name.begin(), name.end(), flag.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    for (const knobs::CommandSetting& one : knobs::recognize_command({"env", entry, "program", flag})) {
      if (one.canonical && one.meaning == knobs::Meaning::kValue && comparable(one.knob)) {
        found.push_back({one.knob, *one.canonical, "environment", name});
        break;
      }
    }
  }
  return found;
}

}  // namespace unidle::cli
