// Files that a command takes its settings from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace unidle::diagnose {

/// Files that a command takes its settings from, as far as that can be told without running it.
struct ConfiguredFiles {
  /// Given on the command line (path, --config path, --config=path), and files of `folder` and of its folders config,
  /// configs and conf that the program's own Python files name.
  std::vector<std::filesystem::path> configurations;
  /// The script of the command and the modules that it imports from its own folder: their constants and the defaults
  /// of their arguments are settings too, until a file or the command line says otherwise.
  std::vector<std::filesystem::path> scripts;
};

/// Never throws; what cannot be read is left out.
ConfiguredFiles configured_files(const std::vector<std::string>& command, const std::filesystem::path& folder);

/// The text of its scripts; empty where one cannot be read. Never throws.
std::string text_of_scripts(const ConfiguredFiles& files);

}  // namespace unidle::diagnose
