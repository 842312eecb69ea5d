// Settings that are right one by one and impossible together.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "unidle/base/error.h"
#include "unidle/train/config.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// `config` itself. Throws kInput, naming the place of the setting and what to change, for the first combination that
/// cannot be in `processes` of them.
const Config& checked_combinations(const Config& config, at::Device device, int processes);

/// The settings that all processes of a run share, by name: all but those of a machine, its folders and its processors.
std::map<std::string, std::string> shared_settings(const Config& config);

/// Of the data that a process has, what must be the same in all: how much of it, its shapes, its columns.
std::map<std::string, std::string> shared_data(const Workload& workload);

/// Warns of each setting that was given and that the workload does not read, as far as its effective() tells. What is
/// in force instead, for the record: the defaults of those that switch something.
Effective warn_of_unread(const Config& config, const Workload& workload);

/// batch.size, or as much of it as leaves a step within train.samples.
std::int64_t batch_within_run(const Config& config, int processes);

/// `error` under the name of the setting and its place, where it is one of the loader about an option.
[[noreturn]] void throw_with_key(const Error& error, const Config& config);

}  // namespace unidle::train
