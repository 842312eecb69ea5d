// Common GPUs by name, for advice on another machine.
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

/// Accepts any spelling: "RTX 4090", "nvidia-a100-40gb", "H100". Of a GPU sold with several memory sizes, the smallest
/// unless the name has one.
std::optional<GpuModel> find_gpu(std::string_view name);

/// `host` with one GPU of that name, or none for "cpu". Throws kUsage, listing the known ones, for any other name.
Hardware with_device(Hardware host, std::string_view name);

}  // namespace unidle::tune
