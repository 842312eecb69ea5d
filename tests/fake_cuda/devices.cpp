// Calls about devices and errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "calls.h"

using namespace fake;

namespace fake {

thread_local int last_error = 0;

int failed(int error) {
  if (error != kSuccess && error != kNotReady) {
    last_error = error;
  }
  return error;
}

}  // namespace fake

namespace {

/// Properties in the layout of CUDA 13; unused ones are filler.
struct Properties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  std::size_t memory, shared_of_block;
  int registers_of_block, warp;
  std::size_t pitch;
  int threads_of_block, block[3], grid[3];
  std::size_t constant;
  int major, minor;
  std::size_t texture_alignment, texture_pitch;
  int multiprocessors, integrated, maps_host;
  int textures[2 + 4 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2 + 1 + 2 + 3 + 2 + 3 + 1 + 2 - 1];
  std::size_t surface_alignment;
  int concurrent, ecc, bus, pci_device, domain, tcc, engines, unified, bus_width, l2, persisting_l2;
  int threads_of_multiprocessor, priorities, global_l1, local_l1;
  std::size_t shared_of_multiprocessor;
  int registers_of_multiprocessor, rest[10];
  std::size_t shared_of_block_at_most;
  int more[128];
};

}  // namespace

extern "C" {

int cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(machine().visible.size());
  return *count > 0 ? kSuccess : failed(kNoDevice);
}

int cudaGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}

int cudaSetDevice(int device) {
  Called call("cudaSetDevice");
  if (call.error != 0) {
    return call.error;
  }
  if (device < 0 || device >= static_cast<int>(machine().visible.size())) {
    return failed(kInvalidDevice);
  }
  current_device = device;
  machine().use(device);
  return kSuccess;
}

int cudaGetDeviceProperties(Properties* out, int device) {
  Machine& here = machine();
  if (device < 0 || device >= static_cast<int>(here.visible.size())) {
    return failed(kInvalidDevice);
  }
  const int index = here.visible[static_cast<std::size_t>(device)];
  std::memset(out, 0, 1008);  // sizeof(cudaDeviceProp) of CUDA 13
  std::snprintf(out->name, sizeof out->name, "Fake GPU");
  out->uuid[3] = static_cast<char>(index + 1);  // as in uuid()
  out->uuid[6] = 0x40;
  out->uuid[8] = static_cast<char>(0x80);
  out->memory = static_cast<std::size_t>(here.speed.total_gb * 1e9);
  out->shared_of_block = 48 << 10;
  out->registers_of_block = out->registers_of_multiprocessor = 65536;
  out->warp = 32;
  out->threads_of_block = 1024;
  out->threads_of_multiprocessor = 2048;
  for (int& one : out->block) {
    one = 1024;
  }
  for (int& one : out->grid) {
    one = 65535;
  }
  out->grid[0] = 2147483647;
  out->major = 9;
  out->multiprocessors = 132;
  out->bus = 16 + index;
  out->l2 = 50 << 20;
  out->concurrent = out->unified = out->engines = out->priorities = 1;
  out->shared_of_multiprocessor = 228 << 10;
  out->shared_of_block_at_most = 227 << 10;
  return kSuccess;
}

int cudaDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  switch (attribute) {
    case 8: *value = 48 << 10; break;
    case 10: *value = 32; break;
    case 1: *value = 1024; break;
    case 5: *value = 2147483647; break;
    case 6:
    case 7: *value = 65535; break;
    case 16: *value = 132; break;
    case 39: *value = 2048; break;
    case 75: *value = 9; break;
    case 97: *value = 227 << 10; break;
    case 106: *value = 32; break;
    default: *value = 0;
  }
  return kSuccess;
}

int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0",
                static_cast<unsigned>(16 + machine().visible[static_cast<std::size_t>(device)]));
  return kSuccess;
}

int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int cudaDeviceEnablePeerAccess(int, unsigned) { return kSuccess; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
const char* cudaGetErrorName(int error) {
  return error == kInitialization ? "cudaErrorInitializationError" : "cudaError";
}
const char* cudaGetErrorString(int error) {
  return error == kInitialization       ? "initialization error"
         : error == kCaptureUnsupported ? "operation not permitted when stream is capturing"
                                        : "scripted error";
}
int cudaGetLastError() { return std::exchange(last_error, 0); }
int cudaPeekAtLastError() { return last_error; }

int cudaDeviceSynchronize() {
  Called call("cudaDeviceSynchronize");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  if (const int error = here.unsafe("cudaDeviceSynchronize")) {
    return failed(error);
  }
  here.use(current_device);
  std::int64_t end = here.default_streams[current_device].end_ns;
  if (!here.copies.empty()) {
    end = std::max(end, here.copies.back().at_ns);
  }
  here.wait(call.held, end);
  return kSuccess;
}

}  // extern "C"
