// Workloads that come as shared libraries.
#pragma once

#include <torch/version.h>

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/train/workload.h"

/// What a library and the program must agree on: the engine's seam, counted by hand, and torch.
#define UNIDLE_PLUGIN_ABI "unidle-workload 2, torch " TORCH_VERSION

/// Once in a library: offers `kind`, a function that returns a `const unidle::train::WorkloadKind&`.
#define UNIDLE_WORKLOAD_PLUGIN(kind)                                       \
  extern "C" const char* unidle_plugin_abi() { return UNIDLE_PLUGIN_ABI; } \
  extern "C" const unidle::train::WorkloadKind* unidle_plugin_workload() { return &(kind)(); }

namespace unidle::train {

/// Loads the library, which stays loaded, and adds the workload's own settings to those that a configuration may have.
/// Throws kInput naming it when it is no such library, or one for another version.
const WorkloadKind& load_plugin(const std::filesystem::path& library);

/// What a compiler needs to be told to make such a library for this program: its headers, which lie in include/ beside
/// the program's folder, and those of the torch that it runs with. Throws kMissing naming headers that are not there.
std::vector<std::string> plugin_flags();

}  // namespace unidle::train
