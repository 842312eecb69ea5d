// What a run is told about its device: by words of the command, by configuration files, by the environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// The device that words of the command ask for, as a setting "device" with the word as its place: --device cpu,
/// trainer.accelerator=gpu, --no-cuda. Nothing where none does, or where they differ.
std::optional<record::Setting> device_of_command(const std::vector<std::string>& command);

/// The same of one configuration file, whose keys device and accelerator say it, by themselves or in sections about the
/// run as a whole (trainer.accelerator, not ema.device); `name` stands in its place.
std::optional<record::Setting> device_of_file(const knobs::ConfigFile& file, const std::string& name);

/// For each variable of `environment` ("NAME=value") that hides every GPU: a setting "device" with source
/// "environment".
std::vector<record::Setting> gpus_hidden_by(const std::vector<std::string>& environment);

}  // namespace unidle::diagnose
