// The GPUs of this machine: what they are, and their readings as a source of the sampler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unidle/telemetry/nvml.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::telemetry {

struct GpuFacts {
  unsigned index = 0;
  std::string name;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::string> capability;  // "9.0"
};

/// Empty where NVML counts none or does not answer.
std::vector<GpuFacts> read_gpu_facts(Nvml& nvml);

/// Series gpu.utilisation (0..1), gpu.memory (bytes), gpu.power (W), gpu.temperature (C), gpu.sm_clock (MHz); the
/// subject is "gpuN". Owns the library. What a device does not answer is a gap.
std::unique_ptr<Source> gpu_source(std::unique_ptr<Nvml> nvml);

}  // namespace unidle::telemetry
