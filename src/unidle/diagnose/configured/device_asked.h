// Which device a run is asked to use: by the command's words, configuration files or the environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// The device that the command's words ask for (--device cpu, trainer.accelerator=gpu, --no-cuda), as a setting
/// "device" whose place is the word. Nothing when no word asks, or when they disagree.
std::optional<record::Setting> device_of_command(const std::vector<std::string>& command);

/// The device that a configuration file asks for by the keys device and accelerator, at the top level or in sections
/// about the whole run (trainer.accelerator, not ema.device). `name` is the file's name in the setting's place.
std::optional<record::Setting> device_of_file(const knobs::ConfigFile& file, const std::string& name);

/// For each variable of `environment` ("NAME=value") that hides every GPU, a setting "device" with source
/// "environment".
std::vector<record::Setting> gpus_hidden_by(const std::vector<std::string>& environment);

}  // namespace unidle::diagnose
