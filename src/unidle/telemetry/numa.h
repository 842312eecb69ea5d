// NUMA nodes: CPUs and the memory that is next to them.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

struct NumaNode {
  int number = 0;
  std::vector<int> cpus;  // ascending; online
};

/// Those that have CPUs, by number. Empty where the system does not tell of any.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& root = host_root());

/// The nodes with those of their CPUs that are among `cpus`; nodes without any are left out.
std::vector<NumaNode> nodes_within(std::vector<NumaNode> nodes, const std::vector<int>& cpus);

}  // namespace unidle::telemetry
