// The built-in workloads, one folder each; the list is generated from the folders' names.
#pragma once

#include <string>
#include <vector>

#include "unidle/train/workload.h"

namespace unidle::workloads {

/// All workloads, by name.
const std::vector<const train::WorkloadKind*>& all_workloads();

/// The workload that the configuration names, among the built-in ones and a loaded one. Throws kInput, with the known
/// names, for an unknown name.
const train::WorkloadKind& find_workload(const train::Config& config, const train::WorkloadKind* loaded = nullptr);

/// Throws kInput naming the library when its workload has the name of a built-in one.
void refuse_known_name(const train::WorkloadKind* loaded, const std::string& library);

}  // namespace unidle::workloads
