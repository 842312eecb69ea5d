// Checks settings that are valid one by one but not together.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/train/config.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Returns `config`. Throws kInput, naming where the setting is and what to change, for the first combination that does
/// not work with `processes` processes.
const Config& checked_combinations(const Config& config, at::Device device, int processes);

/// The settings that must be the same in all processes of a run, by name: all except machine, folder and processor
/// settings.
std::map<std::string, std::string> shared_settings(const Config& config);

/// The properties of the data that must be the same in all processes: size, shapes, columns.
std::map<std::string, std::string> shared_data(const Workload& workload);

/// Warns of each given setting that the workload does not read, according to its effective(), and returns them.
std::vector<const Setting*> warn_of_unread(const Config& config, const Workload& workload);

/// batch.size, reduced so that a step does not exceed train.samples.
std::int64_t batch_within_run(const Config& config, int processes);

/// Rethrows `error`; a loader's error about an option gets the name and place of the setting.
[[noreturn]] void throw_with_key(const Error& error, const Config& config);

}  // namespace unidle::train
