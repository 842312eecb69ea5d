// Facts about a machine that matter for the choice of knobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/gpu.h"

namespace unidle::tune {

struct Hardware {
  double cpus = 1;        // allowed to this job, by affinity and quota
  bool cpu_bf16 = false;  // the CPU has units for bf16
  std::uint64_t memory_bytes = 0;
  int gpus = 0;        // visible to programs here
  int capability = 0;  // CUDA compute capability of the first GPU times ten, e.g. 90; 0 when unknown
  std::string gpu_name;
  std::uint64_t gpu_memory_bytes = 0;
  std::string gpu_note;  // why no GPU could be read; empty when one was read or there is none

  int whole_cpus() const { return cpus < 1 ? 1 : static_cast<int>(cpus); }
};

/// This machine according to telemetry, with the GPUs visible under CUDA_VISIBLE_DEVICES.
Hardware this_machine();

/// Only the visible GPUs. `visible`: CUDA_VISIBLE_DEVICES when set: indices, or prefixes of UUIDs of devices or MIG
/// slices. As in CUDA, an invalid word ends the list. A device in MIG mode gives a program one slice: the first, unless
/// another is named.
Hardware gpus_shown(const std::vector<telemetry::GpuFacts>& gpus, const std::optional<std::string>& visible);

}  // namespace unidle::tune
