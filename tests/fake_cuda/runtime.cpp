// The calls of libcudart.so.13 that PyTorch makes, upon a device that computes nothing and keeps time. It is preloaded
// (LD_PRELOAD), so that a PyTorch of CUDA 13 has GPUs: real tensors, streams, events, graphs, allocators and pinned
// memory, whose kernels take their time and leave memory as it is.
//
//   UNIDLE_FAKE_CUDA       "devices=2 kernel_us=4 ...", see Speed
//   UNIDLE_FAKE_CUDA_LOG   a file that is told "context: DEVICE", "forked: CALL", "captured: CALL"
//   UNIDLE_FAKE_CUDA_BUSY  a file that the fake NVML reads the busy time from (UNIDLE_FAKE_NVML_SCRIPT: "busy:PATH")
//
// What real CUDA refuses is refused: any call in a forked process, unsafe calls while something is captured, an event
// and a stream of two devices.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device.h"

using namespace fake;

namespace {

struct Dim {
  unsigned x, y, z;
};

thread_local int last_error = 0;

int failed(int error) {
  if (error != kSuccess && error != kNotReady) {
    last_error = error;
  }
  return error;
}

struct Called {
  explicit Called(const char* call) : held(machine().lock), error(failed(machine().fault(call))) {}
  std::unique_lock<std::mutex> held;
  int error;
};

/// Properties as CUDA 13 lays them out; what nobody asks for is filler.
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

bool pinned(const void* at) {
  auto& all = machine().memory;
  auto next = all.upper_bound(static_cast<const char*>(at));
  if (next == all.begin()) {
    return false;
  }
  --next;
  return static_cast<const char*>(at) < next->first + next->second.first && !next->second.second;
}

bool on_device(const void* at) {
  auto& all = machine().memory;
  auto next = all.upper_bound(static_cast<const char*>(at));
  if (next == all.begin()) {
    return false;
  }
  --next;
  return static_cast<const char*>(at) < next->first + next->second.first && next->second.second;
}

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

int copy(Called& call, void* to, const void* from, std::size_t bytes, Stream& stream, bool blocking) {
  Machine& here = machine();
  const bool inside = on_device(to) && on_device(from);
  const bool fast = inside || (on_device(to) ? pinned(from) : pinned(to));
  const double rate = (inside ? here.speed.memory_gbs : fast ? here.speed.pinned_gbs : here.speed.pageable_gbs) * 1e9;
  if (stream.capture != nullptr && !fast) {
    return failed(here.unsafe("cudaMemcpyAsync", &stream));
  }
  const std::int64_t end = here.enqueue(call.held, stream, static_cast<double>(bytes) / rate + 2e-6);
  if (end == 0) {
    return kSuccess;  // captured: a replay copies nothing
  }
  if (blocking || !fast) {
    here.wait(call.held, end);
    std::memcpy(to, from, bytes);
  } else {
    const auto later = std::upper_bound(here.copies.begin(), here.copies.end(), end,
                                        [](std::int64_t t, const Copy& one) { return t < one.at_ns; });
    here.copies.insert(later, {end, to, from, bytes});
  }
  return kSuccess;
}

int launch(Dim grid, Dim block, void* stream) {
  Called call("cudaLaunchKernel");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  const double threads = double(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
  constexpr double kBytesOfThread = 32;
  here.enqueue(call.held, *here.stream(stream),
               std::max(here.speed.kernel_us * 1e-6, threads * kBytesOfThread / (here.speed.memory_gbs * 1e9)));
  return kSuccess;
}

}  // namespace

extern "C" {

// -- devices --

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
  out->uuid[3] = static_cast<char>(index + 1);  // as uuid() has it
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

// -- memory --

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
  std::memset(at, value, bytes);
  return kSuccess;
}

int cudaMemset(void* at, int value, std::size_t bytes) { return cudaMemsetAsync(at, value, bytes, nullptr); }
int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int) { return kSuccess; }
int cudaGetSymbolAddress(void** out, const void* symbol) {
  *out = const_cast<void*>(symbol);
  return kSuccess;
}

// -- streams and events --

int cudaStreamCreateWithPriority(void** out, unsigned, int) {
  Called call("cudaStreamCreate");
  if (call.error != 0) {
    return call.error;
  }
  machine().use(current_device);
  auto* made = new Stream;
  made->device = current_device;
  *out = made;
  return kSuccess;
}

int cudaStreamCreate(void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
int cudaStreamDestroy(void*) { return kSuccess; }
int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}

int cudaStreamQuery(void* handle) {
  Called call("cudaStreamQuery");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (const int error = here.unsafe("cudaStreamQuery", stream)) {
    return failed(error);
  }
  here.settle(Machine::now());
  return stream->end_ns <= Machine::now() ? kSuccess : kNotReady;
}

int cudaStreamSynchronize(void* handle) {
  Called call("cudaStreamSynchronize");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (const int error = here.unsafe("cudaStreamSynchronize", stream)) {
    return failed(error);
  }
  here.wait(call.held, stream->end_ns);
  return kSuccess;
}

int cudaStreamWaitEvent(void* handle, Event* event, unsigned) {
  Called call("cudaStreamWaitEvent");
  Stream* stream = machine().stream(handle);
  if (event->capture != nullptr && stream->capture == nullptr) {
    stream->capture = event->capture;
  }
  stream->end_ns = std::max(stream->end_ns, event->at_ns);
  return call.error;
}

int cudaEventCreateWithFlags(Event** out, unsigned flags) {
  Called call("cudaEventCreate");
  if (call.error != 0) {
    return call.error;
  }
  machine().use(current_device);
  *out = new Event;
  (*out)->device = current_device;
  (*out)->timing = (flags & 2U) == 0;
  return kSuccess;
}

int cudaEventCreate(Event** out) { return cudaEventCreateWithFlags(out, 0); }

int cudaEventDestroy(Event* event) {
  Called call("cudaEventDestroy");
  delete event;
  return call.error;
}

int cudaEventRecord(Event* event, void* handle) {
  Called call("cudaEventRecord");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  Stream* stream = here.stream(handle);
  if (stream->device != event->device) {
    here.say("other device: cudaEventRecord");
    return failed(kInvalidHandle);
  }
  here.use(stream->device);
  event->capture = stream->capture;
  event->recorded = true;
  event->at_ns = std::max(stream->end_ns, Machine::now());
  return kSuccess;
}

int cudaEventRecordWithFlags(Event* event, void* handle, unsigned) { return cudaEventRecord(event, handle); }

int cudaEventQuery(Event* event) {
  Called call("cudaEventQuery");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  if (const int error = here.unsafe("cudaEventQuery")) {
    return failed(error);
  }
  here.settle(Machine::now());
  return !event->recorded || event->at_ns <= Machine::now() ? kSuccess : kNotReady;
}

int cudaEventSynchronize(Event* event) {
  Called call("cudaEventSynchronize");
  if (call.error != 0) {
    return call.error;
  }
  if (const int error = machine().unsafe("cudaEventSynchronize")) {
    return failed(error);
  }
  machine().wait(call.held, event->at_ns);
  return kSuccess;
}

int cudaEventElapsedTime(float* ms, const Event* begin, const Event* end) {
  Called call("cudaEventElapsedTime");
  if (call.error != 0) {
    return call.error;
  }
  if (!begin->recorded || !end->recorded || !begin->timing || !end->timing || begin->device != end->device) {
    return failed(kInvalidHandle);
  }
  if (std::max(begin->at_ns, end->at_ns) > Machine::now()) {
    return kNotReady;
  }
  *ms = static_cast<float>(static_cast<double>(end->at_ns - begin->at_ns) * 1e-6);
  return kSuccess;
}

// -- graphs --

int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cudaStreamBeginCapture(void* handle, int mode) {
  Called call("cudaStreamBeginCapture");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  auto* graph = new Graph;
  graph->global = mode == 0;
  here.stream(handle)->capture = graph;
  here.capturing.push_back(graph);
  return kSuccess;
}

int cudaStreamEndCapture(void* handle, Graph** out) {
  Called call("cudaStreamEndCapture");
  Machine& here = machine();
  Graph* graph = std::exchange(here.stream(handle)->capture, nullptr);
  *out = graph;
  if (call.error != 0 || graph == nullptr) {
    return failed(kInvalidValue);
  }
  here.capturing.erase(std::remove(here.capturing.begin(), here.capturing.end(), graph), here.capturing.end());
  return graph->invalid ? failed(kCaptureInvalidated) : kSuccess;
}

int cudaStreamIsCapturing(void* handle, int* status) {
  std::lock_guard<std::mutex> held(machine().lock);
  const Graph* graph = machine().stream(handle)->capture;
  *status = graph == nullptr ? 0 : graph->invalid ? 2 : 1;
  return kSuccess;
}

int cudaStreamGetCaptureInfo(void* handle, int* status, unsigned long long* id, void** graph, const void*** nodes,
                             const void** edges, std::size_t* count) {
  cudaStreamIsCapturing(handle, status);
  Graph* captured = machine().stream(handle)->capture;
  if (id != nullptr) {
    *id = reinterpret_cast<std::uintptr_t>(captured);
  }
  if (graph != nullptr) {
    *graph = captured;
  }
  if (nodes != nullptr) {
    *nodes = nullptr;
  }
  if (edges != nullptr) {
    *edges = nullptr;
  }
  if (count != nullptr) {
    *count = 0;
  }
  return kSuccess;
}

int cudaGraphGetNodes(const Graph* graph, void** nodes, std::size_t* count) {
  if (nodes == nullptr) {
    *count = graph->kernels;
  }
  return kSuccess;
}

int cudaGraphInstantiateWithFlags(Graph** out, Graph* graph, unsigned long long) {
  *out = new Graph(*graph);
  return kSuccess;
}

int cudaGraphLaunch(const Graph* graph, void* handle) {
  Called call("cudaGraphLaunch");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  here.enqueue(call.held, *here.stream(handle), static_cast<double>(graph->cost_ns) * 1e-9);
  return kSuccess;
}

int cudaGraphDestroy(Graph*) { return kSuccess; }
int cudaGraphExecDestroy(Graph*) { return kSuccess; }

// -- kernels --

unsigned __cudaPushCallConfiguration(Dim, Dim, std::size_t, void*);
int __cudaPopCallConfiguration(Dim*, Dim*, std::size_t*, void*);

struct Configuration {
  Dim grid, block;
  std::size_t shared;
  void* stream;
};
static thread_local std::vector<Configuration> configurations;

unsigned __cudaPushCallConfiguration(Dim grid, Dim block, std::size_t shared, void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

int __cudaPopCallConfiguration(Dim* grid, Dim* block, std::size_t* shared, void* stream) {
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<void**>(stream) = last.stream;
  return kSuccess;
}

int __cudaGetKernel(const void** out, const void* function) {
  *out = function;
  return kSuccess;
}
int __cudaLaunchKernel(const void*, Dim grid, Dim block, void**, std::size_t, void* stream) {
  return launch(grid, block, stream);
}
int cudaLaunchKernel(const void*, Dim grid, Dim block, void**, std::size_t, void* stream) {
  return launch(grid, block, stream);
}

struct LaunchConfiguration {
  Dim grid, block;
  std::size_t shared;
  void* stream;
};
int cudaLaunchKernelExC(const LaunchConfiguration* how, const void*, void**) {
  return launch(how->grid, how->block, how->stream);
}

int cudaLaunchHostFunc(void*, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}

struct FunctionAttributes {
  std::size_t shared, constant, local;
  int threads, registers, ptx, binary, rest[32];
};
int cudaFuncGetAttributes(FunctionAttributes* out, const void*) {
  std::memset(out, 0, 24 + 4 * 28);
  out->threads = 1024;
  out->registers = 32;
  out->ptx = out->binary = 90;
  return kSuccess;
}
int cudaFuncSetAttribute(const void*, int, int) { return kSuccess; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t, unsigned) {
  *blocks = 2;
  return kSuccess;
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

int cudaProfilerStart() { return kSuccess; }
int cudaProfilerStop() { return kSuccess; }

}  // extern "C"
