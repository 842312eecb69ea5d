// Properties of a CUDA device, for device_facts.cpp; part of libunidle_cuda.so, like cuda_graphs.cpp.
#include <ATen/cuda/CUDAContextLight.h>

#include <cstdio>
#include <cstring>

#include "unidle/train/device_facts.h"

extern "C" void unidle_cuda_facts(int device, unidle::train::CudaFacts* facts) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
  std::snprintf(facts->name, sizeof facts->name, "%s", properties->name);
  std::memcpy(facts->uuid, properties->uuid.bytes, sizeof facts->uuid);
  std::snprintf(facts->pci, sizeof facts->pci, "%04x:%02x:%02x.0", properties->pciDomainID, properties->pciBusID,
                properties->pciDeviceID);
  facts->major = properties->major;
  facts->minor = properties->minor;
  facts->memory_bytes = properties->totalGlobalMem;
}
