// Workloads in shared libraries.
#pragma once

#include <torch/version.h>

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/train/workload.h"

/// What a library and the program must agree on: the version of this interface, maintained by hand, and torch's.
#define UNIDLE_PLUGIN_ABI "unidle-workload 2, torch " TORCH_VERSION

/// Use once in a library: exports `kind`, a function that returns a `const unidle::train::WorkloadKind&`.
#define UNIDLE_WORKLOAD_PLUGIN(kind)                                       \
  extern "C" const char* unidle_plugin_abi() { return UNIDLE_PLUGIN_ABI; } \
  extern "C" const unidle::train::WorkloadKind* unidle_plugin_workload() { return &(kind)(); }

namespace unidle::train {

/// Loads the library, which stays loaded, and adds the workload's settings to the accepted ones. Throws kInput naming
/// the library when it is of another kind or version.
const WorkloadKind& load_plugin(const std::filesystem::path& library);

/// Compiler flags for building such a library for this program: its headers, in include/ beside the program's folder,
/// and those of its torch. Throws kMissing naming the headers that are missing.
std::vector<std::string> plugin_flags();

}  // namespace unidle::train
