// What the configuration files of a command set, so that a diagnosis can compare it with what is in effect.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// What the command line, the configuration files and the scripts set of the knobs that a running program can be asked
/// for, with the place: each goes before the next, and a setting with source "unnamed" follows a configured one whose
/// key no script can have read. A knob that two files of one kind set differently is left out, and so is one whose key
/// the scripts assign to: what they make of it cannot be told. Settings with source "argument" name the argument of the
/// program's own parser that may say the knob, see account/as_parsed.h. The device that a word of the command or a
/// file asks for is the setting "device", which is no knob.
std::vector<record::Setting> configured_settings(const std::vector<std::string>& command,
                                                 const std::filesystem::path& folder);

/// Entries of `environment` ("NAME=value") that by their name set a knob, with source "environment": whether the
/// program reads them shows in the value that it has. One that hides every GPU sets "device" to "cpu".
std::vector<record::Setting> environment_settings(const std::vector<std::string>& environment);

/// Both, for the record of a run, without those of `overruled`, which the user sets on purpose. Trouble with them is
/// logged and none of the command's: never throws.
std::vector<record::Setting> settings_told(const std::vector<std::string>& command, const std::filesystem::path& folder,
                                           const std::vector<std::string>& environment,
                                           const knobs::Settings& overruled);

}  // namespace unidle::diagnose
