#include "unidle/trace/detail/host_work.h"

#include <array>
#include <string_view>

#include "unidle/base/substrings.h"

namespace unidle::trace::detail {

namespace {

bool is_input(const TraceEvent& event) {
  if (event.name.starts_with("enumerate(DataLoader)")) {
    return true;
  }
  if (is_python_frame(event)) {
    return event.name.starts_with("torch/utils/data/dataloader.py") && event.name.ends_with(": __next__");
  }
  static constexpr auto kWords =
      std::to_array<std::string_view>({"dataloader", "DataLoader", "data_loading", "load_data", "load_batch",
                                       "get_batch", "next_batch", "fetch_batch"});
  return event.category == "user_annotation" && contains_any(event.name, kWords);
}

bool is_compile(const TraceEvent& event) {
  if (is_python_frame(event)) {
    return event.name.starts_with("torch/_dynamo/convert_frame.py") ||
           event.name.find("triton/compiler/compiler.py") != std::string::npos;
  }
  static constexpr auto kCalls = std::to_array<std::string_view>(
      {"cuModuleLoad", "cuLibraryLoad", "cudaLibraryLoad", "hipModuleLoad", "hiprtcCompile", "nvrtcCompile",
       "cudaGraphInstantiate", "cuGraphInstantiate", "hipGraphInstantiate", "Lazy Function Loading"});
  static constexpr auto kWords = std::to_array<std::string_view>({"(dynamo_timed)", "async_compile.wait"});
  return starts_with_any(event.name, kCalls) || contains_any(event.name, kWords);
}

bool is_allocator(std::string_view name) {
  static constexpr auto kCalls = std::to_array<std::string_view>(
      {"cudaMalloc", "cudaFree",    "cudaHostAlloc",  "cuMemAlloc",     "cuMemFree",    "cuMemCreate",
       "cuMemMap",   "cuMemUnmap",  "cuMemRelease",   "cuMemSetAccess", "cuMemAddress", "cuMemHostAlloc",
       "hipMalloc",  "hipFree",     "hipHostMalloc",  "hipHostFree",    "hipExtMalloc", "hipMemCreate",
       "hipMemMap",  "hipMemUnmap", "hipMemSetAccess"});
  return starts_with_any(name, kCalls);
}

bool is_sync(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos &&
         (name.starts_with("cuda") || name.starts_with("cu") || name.starts_with("hip"));
}

bool is_copy_call(std::string_view name) {
  return name.starts_with("cudaMemcpy") || name.starts_with("hipMemcpy") || name.starts_with("cuMemcpy");
}

bool is_launch(std::string_view name) {
  static constexpr auto kCalls =
      std::to_array<std::string_view>({"cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch", "hipLaunch",
                                       "hipExtLaunch", "hipExtModuleLaunch", "hipModuleLaunch", "hipGraphLaunch"});
  return starts_with_any(name, kCalls);
}

}  // namespace

bool is_kernel(const TraceEvent& event) {
  return event.category == "kernel" || event.category == "Kernel" ||
         (event.category.empty() && event.process == "CUDA functions");
}

bool is_copy(const TraceEvent& event) {
  const std::string& category = event.category;
  return category == "gpu_memcpy" || category == "gpu_memset" || category == "Memcpy" || category == "Memset";
}

bool is_device_side(const TraceEvent& event) {
  return event.category.starts_with("gpu_") || event.category == "cuda_sync" || is_kernel(event) || is_copy(event);
}

bool is_operator(const TraceEvent& event) {
  return event.category == "cpu_op" || event.category == "Operator" ||
         (event.category.empty() && event.process == "CPU functions");
}

bool is_python_frame(const TraceEvent& event) {
  return event.category == "python_function" || event.category == "Python";
}

bool names_unread_device(std::string_view process) {
  static constexpr auto kNames = std::to_array<std::string_view>({"/device:", "Ascend Hardware", "MTIA "});
  return starts_with_any(process, kNames);
}

std::optional<HostWork> host_work_of(const TraceEvent& event) {
  if (is_input(event)) {
    return HostWork::kInput;
  }
  if (is_compile(event)) {
    return HostWork::kCompile;
  }
  if (is_python_frame(event)) {
    return HostWork::kProgram;
  }
  if (is_operator(event)) {
    return HostWork::kOperator;
  }
  if (is_allocator(event.name)) {
    return HostWork::kAllocator;
  }
  if (is_sync(event.name)) {
    return HostWork::kSync;
  }
  if (is_copy_call(event.name)) {
    return HostWork::kCopy;
  }
  if (is_launch(event.name)) {
    return HostWork::kLaunch;
  }
  if (event.category == "overhead") {
    // The launch queue is full: the host is ahead of the device and waits.
    return event.name == "Command Buffer Full" ? HostWork::kLaunch : HostWork::kProfiler;
  }
  return event.category == "user_annotation" ? std::optional(HostWork::kProgram) : std::nullopt;
}

bool is_blocking_copy(const TraceEvent& event) {
  return event.name == "cudaMemcpy" || event.name == "hipMemcpy" || event.name == "hipMemcpyWithStream" ||
         event.name == "hipMemcpyDtoH" || event.name == "cuMemcpyDtoH_v2";
}

bool is_graph_launch(const TraceEvent& event) {
  static constexpr auto kCalls =
      std::to_array<std::string_view>({"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"});
  return starts_with_any(event.name, kCalls);
}

bool is_driver_launch(const TraceEvent& event) {
  static constexpr auto kCalls =
      std::to_array<std::string_view>({"cuLaunch", "hipModuleLaunch", "hipExtModuleLaunch", "hipDrvLaunch"});
  return starts_with_any(event.name, kCalls);
}

bool begins_capture(const TraceEvent& event) {
  return event.name.starts_with("cudaStreamBeginCapture") || event.name.starts_with("hipStreamBeginCapture") ||
         event.name.starts_with("cuStreamBeginCapture");
}

bool ends_capture(const TraceEvent& event) {
  return event.name.starts_with("cudaStreamEndCapture") || event.name.starts_with("hipStreamEndCapture") ||
         event.name.starts_with("cuStreamEndCapture");
}

}  // namespace unidle::trace::detail
