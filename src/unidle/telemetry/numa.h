// NUMA nodes and their CPUs.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/base/files.h"

namespace unidle::telemetry {

struct NumaNode {
  int number = 0;
  std::vector<int> cpus;  // online, ascending
};

/// Returns the nodes that have CPUs, by number. Empty when the system reports none.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& root = host_root());

/// Reduces each node to its CPUs among `cpus`; drops nodes left without any.
std::vector<NumaNode> nodes_within(std::vector<NumaNode> nodes, const std::vector<int>& cpus);

}  // namespace unidle::telemetry
