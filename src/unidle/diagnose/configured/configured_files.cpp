#include "unidle/diagnose/configured/configured_files.h"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/files.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargestConfig_bytes = 1 << 20;  // a larger YAML or JSON file is data
constexpr std::size_t kMostFiles = 200;                   // examined per folder

bool is_configuration(const fs::path& path) {
  static constexpr std::array<std::string_view, 4> kEndings = {".yaml", ".yml", ".json", ".toml"};
  const std::string ending = path.extension().string();
  std::error_code failure;
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() && fs::is_regular_file(path, failure) &&
         fs::file_size(path, failure) <= kLargestConfig_bytes && !failure;
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

/// Adds the files of one folder that `scripts` name.
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

/// The file of the module that `python -m a.b` runs, when it is the program's own.
fs::path module_file(const fs::path& folder, std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  const fs::path package = folder / name / "__main__.py";
  std::error_code failure;
  return fs::is_regular_file(package, failure) ? package : folder / (name + ".py");
}

/// The first module that a line of Python imports, without leading dots; empty when the line is not an import.
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

/// Adds the modules in `folder` that the script `text` imports.
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

/// Hydra: model=large and +experiment=fast name files in the folders model and experiment.
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

}  // namespace

ConfiguredFiles configured_files(const std::vector<std::string>& command, const fs::path& folder) {
  try {
    return find_files(command, folder);
  } catch (const std::exception&) {
    return {};  // settings are optional: the run goes on without them
  }
}

std::optional<std::string> text_of_program(const std::vector<std::string>& command, const fs::path& folder) {
  try {
    ConfiguredFiles files = find_files(command, folder);
    if (files.scripts.empty()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < files.scripts.size(); ++i) {  // which grow
      const fs::path script = files.scripts[i];
      const std::string text = text_of(script);
      for (const fs::path& of : std::set<fs::path>{script.parent_path(), files.scripts.front().parent_path(), folder}) {
        add_imported(of, text, files.scripts);
      }
      keep_first_of_equal(files.scripts);
    }
    std::string text = text_of(files.scripts) + text_of(files.configurations);
    for (const std::string& word : command) {
      const bool option = word.starts_with('-') || word.find('=') != std::string::npos;
      text += option ? word + '\n' : "";
    }
    return text;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string text_of_scripts(const ConfiguredFiles& files) {
  try {
    return text_of(files.scripts);
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace unidle::diagnose
