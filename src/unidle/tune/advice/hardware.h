// What of a machine matters to the choice of knobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/gpu.h"

namespace unidle::tune {

struct Hardware {
  double cpus = 1;        // that this job may use: affinity and quota together
  bool cpu_bf16 = false;  // the CPU has units for bf16
  std::uint64_t memory_bytes = 0;
  int gpus = 0;        // that programs are shown here
  int capability = 0;  // CUDA compute capability of the first GPU times ten, e.g. 90; 0 when unknown
  std::string gpu_name;
  std::uint64_t gpu_memory_bytes = 0;
  std::string gpu_note;  // why no GPU could be read; empty when one was, or when it is known that there is none

  int whole_cpus() const { return cpus < 1 ? 1 : static_cast<int>(cpus); }
};

/// This machine, as telemetry sees it, with the GPUs that CUDA_VISIBLE_DEVICES shows.
Hardware this_machine();

/// The GPUs of it alone. `visible`: CUDA_VISIBLE_DEVICES, where it is set: numbers, or beginnings of UUIDs of devices
/// or MIG slices; as for CUDA, what follows a word that is none of these does not count. Of a device in MIG mode a
/// program gets a slice, the first one unless another is named.
Hardware gpus_shown(const std::vector<telemetry::GpuFacts>& gpus, const std::optional<std::string>& visible);

}  // namespace unidle::tune
