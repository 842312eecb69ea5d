// What the configuration files of a command set, so that a diagnosis can compare it with what is in effect.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/record/record.h"

namespace unidle::cli {

/// Configuration files that `command` reads, as far as that can be told without running it: files that it is given
/// (path, --config path, --config=path), and files of `folder` and of its folders config, configs and conf that the
/// script of the command names. Never throws; what cannot be read is left out.
std::vector<std::filesystem::path> configuration_files(const std::vector<std::string>& command,
                                                       const std::filesystem::path& folder);

/// Their settings of knobs that a running program can be asked for, with file:line. A knob that two files set
/// differently is left out.
std::vector<record::Setting> configured_settings(const std::vector<std::string>& command,
                                                 const std::filesystem::path& folder);

}  // namespace unidle::cli
