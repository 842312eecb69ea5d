// The workloads that this program trains, one folder each: the list is made from their names.
#pragma once

#include <string>
#include <vector>

#include "unidle/train/workload.h"

namespace unidle::workloads {

/// All workloads, by name.
const std::vector<const train::WorkloadKind*>& all_workloads();

/// The one that the configuration names, of those and of a loaded one. Throws kInput, with the known names, when there
/// is none of that name.
const train::WorkloadKind& find_workload(const train::Config& config, const train::WorkloadKind* loaded = nullptr);

/// Throws kInput naming the library whose workload has the name of one of those.
void refuse_known_name(const train::WorkloadKind* loaded, const std::string& library);

}  // namespace unidle::workloads
