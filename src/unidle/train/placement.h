// cpu.numa: which CPUs a process of the run keeps to, where some memory is nearer to some CPUs.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/numa.h"
#include "unidle/train/config.h"

namespace unidle::train {

/// A process among those of the run on this machine.
struct LocalPlace {
  int rank = 0;
  int world = 1;
};

struct Placement {
  std::vector<int> cpus;
  int sharers = 1;  // processes of the run that keep to the same
};

/// Beside a GPU: the CPUs of the node that it is next to. On CPUs: the nodes are shared out among the processes, whole
/// nodes where there are more of them. Nothing where that makes no difference: fewer than two nodes, or one process on
/// CPUs, which takes them all. `nodes` have only CPUs that the process may use. `gpu_node`: its number. REQUIRES: it is
/// one of `nodes`.
std::optional<Placement> choose_placement(const std::vector<telemetry::NumaNode>& nodes, std::optional<int> gpu_node,
                                          const LocalPlace& place);

/// What became of cpu.numa.
struct Placed {
  std::optional<std::string> in_force;  // "auto" or "off"; nothing where it makes no difference
  int sharers = 1;                      // processes of the run that share the CPUs of this one
};

/// Keeps this thread, and all that it starts from now on, to the chosen CPUs when cpu.numa is auto. Memory follows: the
/// kernel takes a page from the node of the thread that writes to it first. To be called before threads are started and
/// before memory is taken. Where it cannot be done one warning says why, and nothing has changed.
Placed place_process(const Config& config, at::Device device, const LocalPlace& place,
                     const std::filesystem::path& root = host_root());

}  // namespace unidle::train
