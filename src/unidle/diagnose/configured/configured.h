// Reads what a command's configuration sets, so that a diagnosis can compare it with what is in effect.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// The values of observable knobs that the command line, configuration files and scripts set, in this order of
/// precedence, each with its place. A setting with source "unnamed" follows a configured one whose key no script can
/// have read. Leaves out a knob that two files of one kind set differently, or whose key the scripts assign to: its
/// value cannot be determined. Settings with source "argument" name the argument of the program's parser that may set
/// the knob, see account/as_parsed.h. The setting "device", which is not a knob, is the device that the command or a
/// file asks for.
std::vector<record::Setting> configured_settings(const std::vector<std::string>& command,
                                                 const std::filesystem::path& folder);

/// Entries of `environment` ("NAME=value") whose names match a knob, with source "environment"; the live value shows
/// whether the program reads them. A variable that hides every GPU sets "device" to "cpu".
std::vector<record::Setting> environment_settings(const std::vector<std::string>& environment);

/// Both of the above, for the record of a run, without the knobs in `overruled`, which the user sets on purpose. Never
/// throws: problems are logged and do not affect the command.
std::vector<record::Setting> configured_run_settings(const std::vector<std::string>& command,
                                                     const std::filesystem::path& folder,
                                                     const std::vector<std::string>& environment,
                                                     const knobs::Settings& overruled);

}  // namespace unidle::diagnose
