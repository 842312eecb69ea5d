// Calls that launch kernels, and calls that the compiler generates beside them.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include "calls.h"

using namespace fake;

namespace {

/// Kernels of fused optimisers: the first argument begins with the addresses of the weights.
struct Updates {
  std::mutex lock;
  std::set<const void*> kernels;

  bool have(const void* kernel) {
    const std::lock_guard<std::mutex> held(lock);
    return kernels.count(kernel) > 0;
  }
};

/// Kernels are registered while libraries are loaded.
Updates& updates() {
  static auto* the = new Updates;
  return *the;
}

int launch(const void* kernel, Dim grid, Dim block, void* const* arguments, void* stream) {
  Called call("cudaLaunchKernel");
  if (call.error != 0) {
    return call.error;
  }
  Machine& here = machine();
  if (arguments != nullptr && updates().have(kernel)) {
    here.update(*here.stream(stream), *static_cast<float* const*>(arguments[0]));
  }
  const double threads = double(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
  constexpr double kBytesOfThread = 32;
  here.enqueue(call.held, *here.stream(stream),
               std::max(here.speed.kernel_us * 1e-6, threads * kBytesOfThread / (here.speed.memory_gbs * 1e9)));
  return kSuccess;
}

}  // namespace

extern "C" {

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
int __cudaLaunchKernel(const void* kernel, Dim grid, Dim block, void** arguments, std::size_t, void* stream) {
  return launch(kernel, grid, block, arguments, stream);
}
int cudaLaunchKernel(const void* kernel, Dim grid, Dim block, void** arguments, std::size_t, void* stream) {
  return launch(kernel, grid, block, arguments, stream);
}

struct LaunchConfiguration {
  Dim grid, block;
  std::size_t shared;
  void* stream;
};
int cudaLaunchKernelExC(const LaunchConfiguration* how, const void* kernel, void** arguments) {
  return launch(kernel, how->grid, how->block, arguments, how->stream);
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
void __cudaRegisterFunction(void**, const char* kernel, char*, const char* name, int, void*, void*, void*, void*,
                            int*) {
  if (std::string_view(name).find("FusedOptimizerTensorListMetadata") != std::string_view::npos) {
    const std::lock_guard<std::mutex> held(updates().lock);
    updates().kernels.insert(kernel);
  }
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

int cudaProfilerStart() { return kSuccess; }
int cudaProfilerStop() { return kSuccess; }

}  // extern "C"
