#include "unidle/cli/configured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <set>
#include <string_view>

#include "unidle/base/files.h"
#include "unidle/knobs/recognize.h"

namespace unidle::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargestConfig_bytes = 1 << 20;  // data in YAML or JSON is no configuration
constexpr std::size_t kMostFiles = 200;                   // looked at in a folder

bool is_configuration(const fs::path& path) {
  static constexpr std::array<std::string_view, 6> kEndings = {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"};
  const std::string ending = path.extension().string();
  std::error_code failure;
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() && fs::is_regular_file(path, failure) &&
         fs::file_size(path, failure) <= kLargestConfig_bytes && !failure;
}

/// Knobs whose value in the live program means the same as in a file. A batch size is not one: it may be of all
/// devices, or of all micro-batches.
bool comparable(std::string_view knob) {
  static constexpr std::array<std::string_view, 11> kKnobs = {
      "loader.workers", "loader.pin_memory", "loader.prefetch_factor", "loader.persistent_workers", "precision.amp",
      "precision.tf32", "compile.mode",      "layout.channels_last",   "cudnn.benchmark",           "optimizer.fused",
      "cpu.threads"};
  return std::find(kKnobs.begin(), kKnobs.end(), knob) != kKnobs.end();
}

std::string text_of(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure) || fs::file_size(path, failure) > kLargestConfig_bytes || failure) {
    return "";
  }
  return read_file(path);
}

/// Files of one folder that `script` names.
void add_named(const fs::path& folder, const std::string& script, std::vector<fs::path>& files) {
  std::error_code failure;
  std::size_t looked_at = 0;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end && ++looked_at <= kMostFiles;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (script.find(name) != std::string::npos && is_configuration(entry->path())) {
      files.push_back(entry->path());
    }
  }
}

std::vector<fs::path> find_files(const std::vector<std::string>& command, const fs::path& folder) {
  std::vector<fs::path> files;
  std::string scripts;
  for (const std::string& word : command) {
    const auto equals = word.find('=');
    const fs::path path = folder / (equals == std::string::npos ? word : word.substr(equals + 1));
    if (is_configuration(path)) {
      files.push_back(path);
    } else if (path.extension() == ".py") {
      scripts += text_of(path);
    }
  }
  for (const char* inside : {"", "config", "configs", "conf"}) {
    add_named(folder / inside, scripts, files);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

std::vector<fs::path> configuration_files(const std::vector<std::string>& command, const fs::path& folder) {
  try {
    return find_files(command, folder);
  } catch (const std::exception&) {
    return {};  // a convenience; the run goes on without it
  }
}

std::vector<record::Setting> configured_settings(const std::vector<std::string>& command, const fs::path& folder) {
  std::map<std::string, record::Setting> settings;
  std::set<std::string> contradicted;
  for (const fs::path& file : configuration_files(command, folder)) {
    try {
      for (const auto& [knob, value] : knobs::configured(knobs::recognize(file))) {
        const std::string where = fmt::format("{}:{}", file.lexically_relative(folder).string(), value.line);
        const auto [known, added] = settings.try_emplace(knob, record::Setting{knob, value.value, "configured", where});
        if (!added && known->second.value != value.value) {
          contradicted.insert(knob);
        }
      }
    } catch (const std::exception&) {
      continue;  // not for us to complain about: the program will, if it reads it
    }
  }
  std::vector<record::Setting> found;
  for (const auto& [knob, setting] : settings) {
    if (comparable(knob) && !contradicted.contains(knob)) {
      found.push_back(setting);
    }
  }
  return found;
}

}  // namespace unidle::cli
