// Where a CUDA device sits, for placement.cpp; in libunidle_cuda.so, as cuda_graphs.cpp is.
#include <cuda_runtime_api.h>

/// As CUDA spells it, "0000:1B:00.0". 0 when it does not say.
extern "C" int unidle_cuda_pci_bus_id(int device, char* text, int size) {
  return cudaDeviceGetPCIBusId(text, size, device) == cudaSuccess ? 1 : 0;
}
