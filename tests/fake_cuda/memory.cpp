// Calls about memory and copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "calls.h"

using namespace fake;

namespace {

/// The block of memory that contains `at`; nothing for other memory.
struct Block {
  bool known = false, device = false;
};

Block block_of(const void* at) {
  auto& all = machine().memory;
  auto next = all.upper_bound(static_cast<const char*>(at));
  if (next == all.begin()) {
    return {};
  }
  --next;
  const bool inside = static_cast<const char*>(at) < next->first + next->second.first;
  return {inside, inside && next->second.second};
}

bool pinned(const void* at) {
  const Block block = block_of(at);
  return block.known && !block.device;
}

bool on_device(const void* at) { return block_of(at).device; }

int allocate(void** out, std::size_t bytes, bool device) {
  Machine& here = machine();
  if (device && static_cast<double>(here.used_bytes) + static_cast<double>(bytes) > here.speed.total_gb * 1e9) {
    return failed(kOutOfMemory);
  }
  here.use(current_device);
  *out = std::calloc(bytes / 4096 + 1, 4096);
  here.memory[static_cast<char*>(*out)] = {bytes, device};
  here.used_bytes += device ? static_cast<std::int64_t>(bytes) : 0;
  return kSuccess;
}

int release(void* at) {
  Machine& here = machine();
  const auto found = here.memory.find(static_cast<char*>(at));
  if (at == nullptr || found == here.memory.end()) {
    return kSuccess;
  }
  here.settle(INT64_MAX);
  here.used_bytes -= found->second.second ? static_cast<std::int64_t>(found->second.first) : 0;
  here.memory.erase(found);
  std::free(at);
  return kSuccess;
}

/// Nothing is computed from data on the device, so the first part of large tensors is enough: copying all of them would
/// take a host longer than a device.
std::size_t bytes_kept(const void* to, std::size_t bytes) {
  constexpr std::size_t kMost = 1 << 20;
  return on_device(to) ? std::min(bytes, kMost) : bytes;
}

int copy(Called& call, void* to, const void* from, std::size_t bytes, Stream& stream, bool blocking) {
  Machine& here = machine();
  const bool inside = on_device(to) && on_device(from);
  const bool fast = inside || (on_device(to) ? pinned(from) : pinned(to));
  const double rate = (inside ? here.speed.memory_gbs : fast ? here.speed.pinned_gbs : here.speed.pageable_gbs) * 1e9;
  if (stream.capture != nullptr && !fast) {
    return failed(here.unsafe("cudaMemcpyAsync", &stream));
  }
  // Copies over the link are not kernels: NVML's utilisation does not count them.
  const std::int64_t end = here.enqueue(call.held, stream, static_cast<double>(bytes) / rate + 2e-6, inside ? 1 : 0);
  if (end == 0) {
    return kSuccess;  // captured: a replay copies nothing
  }
  if (blocking || !fast) {
    here.wait(call.held, end);
    std::memcpy(to, from, bytes_kept(to, bytes));
  } else {
    const auto later = std::upper_bound(here.copies.begin(), here.copies.end(), end,
                                        [](std::int64_t t, const Copy& one) { return t < one.at_ns; });
    here.copies.insert(later, {end, to, from, bytes_kept(to, bytes)});
  }
  return kSuccess;
}

}  // namespace

extern "C" {

int cudaMalloc(void** out, std::size_t bytes) {
  Called call("cudaMalloc");
  if (call.error != 0) {
    return call.error;
  }
  if (const int error = machine().unsafe("cudaMalloc")) {
    return failed(error);
  }
  return allocate(out, bytes, true);
}

int cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  Called call("cudaHostAlloc");
  return call.error != 0 ? call.error : allocate(out, bytes, false);
}

int cudaFree(void* at) {
  Called call("cudaFree");
  return call.error != 0 ? call.error : release(at);
}

int cudaFreeHost(void* at) {
  Called call("cudaFreeHost");
  return call.error != 0 ? call.error : release(at);
}

int cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  Called call("cudaHostRegister");
  machine().memory[static_cast<char*>(at)] = {bytes, false};
  return call.error;
}

int cudaHostUnregister(void* at) {
  Called call("cudaHostUnregister");
  machine().memory.erase(static_cast<char*>(at));
  return call.error;
}

int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  Called call("cudaMemGetInfo");
  if (call.error != 0) {
    return call.error;
  }
  machine().use(current_device);
  *total = static_cast<std::size_t>(machine().speed.total_gb * 1e9);
  *free = *total - static_cast<std::size_t>(machine().used_bytes);
  return kSuccess;
}

struct PointerAttributes {
  int type, device;
  void *on_device, *on_host;
  long rest[8];
};

int cudaPointerGetAttributes(PointerAttributes* out, const void* at) {
  Called call("cudaPointerGetAttributes");
  if (call.error != 0) {
    return call.error;
  }
  *out = {on_device(at) ? 2 : pinned(at) ? 1 : 0, current_device, const_cast<void*>(at), const_cast<void*>(at), {}};
  return kSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  Called call("cudaMemcpyAsync");
  return call.error != 0 ? call.error : copy(call, to, from, bytes, *machine().stream(stream), false);
}

int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  Called call("cudaMemcpy");
  if (call.error != 0) {
    return call.error;
  }
  if (const int error = machine().unsafe("cudaMemcpy")) {
    return failed(error);
  }
  return copy(call, to, from, bytes, *machine().stream(nullptr), true);
}

int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return cudaMemcpyAsync(to, from, bytes, 4, stream);
}

int cudaMemsetAsync(void* at, int value, std::size_t bytes, void* stream) {
  Called call("cudaMemsetAsync");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  here.enqueue(call.held, *here.stream(stream), static_cast<double>(bytes) / (here.speed.memory_gbs * 1e9) + 2e-6);
  std::memset(at, value, bytes_kept(at, bytes));
  return kSuccess;
}

int cudaMemset(void* at, int value, std::size_t bytes) { return cudaMemsetAsync(at, value, bytes, nullptr); }
int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int) { return kSuccess; }
int cudaGetSymbolAddress(void** out, const void* symbol) {
  *out = const_cast<void*>(symbol);
  return kSuccess;
}

}  // extern "C"
