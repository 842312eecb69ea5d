// Properties of a CUDA device.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

namespace unidle::train {

struct DeviceFacts {
  std::string name;
  std::string uuid;  // as NVML spells it, "GPU-xxxxxxxx-...", or that of the MIG slice visible to this process
  std::string pci;   // as sysfs spells it, "0000:1b:00.0"
  int major = 0;     // compute capability
  int minor = 0;
  std::uint64_t memory_bytes = 0;
};

/// Nothing for other devices; nothing, with a warning, when libunidle_cuda.so cannot be loaded.
std::optional<DeviceFacts> device_facts(at::Device device);

/// The result of unidle_cuda_facts in libunidle_cuda.so.
struct CudaFacts {
  char name[256];
  unsigned char uuid[16];
  char pci[32];
  int major;
  int minor;
  std::uint64_t memory_bytes;
};
/// Throws what torch throws.
using AskCudaFacts = void (*)(int device, CudaFacts* facts);

}  // namespace unidle::train
