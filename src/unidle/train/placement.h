// cpu.numa: binds the processes of a run to CPUs on machines with NUMA nodes.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/numa.h"
#include "unidle/train/config.h"

namespace unidle::train {

/// The place of a process among those of the run on this machine.
struct LocalPlace {
  int rank = 0;
  int world = 1;
};

struct Placement {
  std::vector<int> cpus;
  int sharers = 1;  // processes of the run bound to the same CPUs
};

/// With a GPU: the CPUs of the GPU's NUMA node. On CPUs: nodes are divided among the processes, whole nodes when there
/// are enough. Nothing when it makes no difference: fewer than two nodes, or a single process on CPUs, which uses all.
/// `nodes` contain only CPUs that the process may use. `gpu_node`: the GPU's node. REQUIRES: it is one of `nodes`.
std::optional<Placement> choose_placement(const std::vector<telemetry::NumaNode>& nodes, std::optional<int> gpu_node,
                                          const LocalPlace& place);

/// The outcome of cpu.numa.
struct Placed {
  std::optional<std::string> in_force;  // "auto" or "off"; nothing when it makes no difference
  int sharers = 1;                      // processes of the run that share this process's CPUs
};

/// When cpu.numa is auto, binds this thread and all threads it starts later to the chosen CPUs. Memory follows: the
/// kernel takes a page from the node of the thread that first writes to it. Call before starting threads and allocating
/// memory. On failure one warning gives the reason, and nothing has changed.
Placed place_process(const Config& config, at::Device device, const LocalPlace& place,
                     const std::filesystem::path& root = host_root());

}  // namespace unidle::train
