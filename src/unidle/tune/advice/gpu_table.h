// Common GPUs by name, for advice about a machine other than this one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

struct GpuModel {
  std::string_view name;
  int memory_gib;
  int capability;  // times ten
};

/// Memory from NVIDIA's data sheets, compute capability from NVIDIA's list "CUDA GPU Compute Capability".
const std::vector<GpuModel>& known_gpus();

/// However it is written: "RTX 4090", "nvidia-a100-40gb", "H100". Of one that exists with several memories and none is
/// named, the one with the least.
std::optional<GpuModel> find_gpu(std::string_view name);

/// `host` with one GPU of that name, or with none for "cpu". Throws kUsage, naming the known ones, for any other.
Hardware with_device(Hardware host, std::string_view name);

}  // namespace unidle::tune
