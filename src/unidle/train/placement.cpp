#include "unidle/train/placement.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "unidle/base/log.h"
#include "unidle/telemetry/gpu.h"
#include "unidle/train/device_facts.h"

namespace unidle::train {

namespace {

using telemetry::NumaNode;

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

/// Binds this thread; returns 0 or errno.
int keep_to(const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) {
    CPU_SET(cpu, &mask);
  }
  return sched_setaffinity(0, sizeof(mask), &mask) == 0 ? 0 : errno;
}

/// The NUMA node of the GPU when it is one of `nodes`; otherwise nothing, and a warning.
std::optional<int> node_of(at::Device device, const std::vector<NumaNode>& nodes, const std::filesystem::path& root) {
  telemetry::GpuFacts facts;
  const std::optional<DeviceFacts> told = device_facts(device);
  facts.pci_bus_id = told ? told->pci : "";
  telemetry::add_locality(facts, root);
  if (!facts.numa_node) {
    spdlog::warn("cpu.numa: the machine does not say which NUMA node {} is next to", device.str());
    return std::nullopt;
  }
  const bool among =
      std::any_of(nodes.begin(), nodes.end(), [&](const NumaNode& node) { return node.number == *facts.numa_node; });
  if (!among) {
    spdlog::warn("cpu.numa: {} is next to NUMA node {}, and this process may not use its CPUs", device.str(),
                 *facts.numa_node);
    return std::nullopt;
  }
  return facts.numa_node;
}

}  // namespace

std::optional<Placement> choose_placement(const std::vector<NumaNode>& nodes, std::optional<int> gpu_node,
                                          const LocalPlace& place) {
  const auto count = static_cast<int>(nodes.size());
  if (count < 2 || (!gpu_node && place.world == 1)) {
    return std::nullopt;
  }
  Placement chosen;
  // Assumes that GPUs, and the processes with them, are spread evenly over the nodes.
  chosen.sharers = (place.world + count - 1) / count;
  if (gpu_node) {
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const NumaNode& node) { return node.number == *gpu_node; });
    chosen.cpus = found->cpus;
    return chosen;
  }
  const int first = place.rank * count / place.world;
  const int end = std::max((place.rank + 1) * count / place.world, first + 1);
  for (int node = first; node < end; ++node) {
    const std::vector<int>& cpus = nodes[static_cast<std::size_t>(node)].cpus;
    chosen.cpus.insert(chosen.cpus.end(), cpus.begin(), cpus.end());
  }
  return chosen;
}

Placed place_process(const Config& config, at::Device device, const LocalPlace& place,
                     const std::filesystem::path& root) {
  if (config.text("cpu.numa") != "auto") {
    return {"off", place.world};
  }
  const std::vector<NumaNode> nodes = telemetry::nodes_within(telemetry::numa_nodes(root), allowed_cpus());
  if (nodes.size() < 2) {
    return {std::nullopt, place.world};
  }
  std::optional<int> gpu_node;
  if (!device.is_cpu()) {
    gpu_node = node_of(device, nodes, root);
    if (!gpu_node) {
      return {"off", place.world};
    }
  }
  const std::optional<Placement> chosen = choose_placement(nodes, gpu_node, place);
  if (!chosen) {
    return {std::nullopt, place.world};
  }
  if (const int failure = keep_to(chosen->cpus); failure != 0) {
    spdlog::warn("cpu.numa: the system refuses to keep this process to its node's CPUs: {}",
                 std::generic_category().message(failure));
    return {"off", place.world};
  }
  return {"auto", chosen->sharers};
}

}  // namespace unidle::train
