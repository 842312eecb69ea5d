// Files that contain a command's settings.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace unidle::diagnose {

/// Files that contain a command's settings, as far as static reading finds them.
struct ConfiguredFiles {
  /// Files named on the command line (path, --config path, --config=path), and files of `folder` and its subfolders
  /// config, configs and conf that the program's own Python files name.
  std::vector<std::filesystem::path> configurations;
  /// The command's script and the modules that it imports from its own folder. Their constants and argument defaults
  /// are settings too, unless a file or the command line overrides them.
  std::vector<std::filesystem::path> scripts;
};

/// Never throws; files that cannot be read are left out.
ConfiguredFiles configured_files(const std::vector<std::string>& command, const std::filesystem::path& folder);

/// The text of the program as far as it is found without running it: the options of its command, the files, and the
/// program's own modules that these import, directly or not. Nothing when the command names no script. Never throws.
std::optional<std::string> text_of_program(const std::vector<std::string>& command,
                                           const std::filesystem::path& folder);

/// The text of the scripts; unreadable ones contribute nothing. Never throws.
std::string text_of_scripts(const ConfiguredFiles& files);

}  // namespace unidle::diagnose
