#include "unidle/train/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"

namespace unidle::train {

namespace {

bool device_present() {
  return std::getenv("UNIDLE_FORCE_CUDA") != nullptr || std::filesystem::exists("/dev/nvidiactl") ||
         std::filesystem::exists("/dev/dxg");  // the device file under WSL
}

/// Whether the launcher shows each process only its own device, so that it is number 0 in all of them.
bool sees_only_own_device(int devices) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return devices == 1 && (std::getenv("SLURM_PROCID") != nullptr || (visible != nullptr && *visible != '\0'));
}

/// Does what torch.use_deterministic_algorithms(True) does, and what its documentation asks for in addition.
void use_deterministic(at::Context& context, bool wanted) {
  context.setDeterministicAlgorithms(wanted, /*warn_only=*/false);
  context.setDeterministicCuDNN(wanted);
  context.setDeterministicFillUninitializedMemory(false);  // only a cost: no memory is read before it is written
  if (wanted) {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // cuBLAS reads it at its first use
  }
}

/// Loads libtorch_cuda from the folder of libtorch_cpu. Returns an empty text on success, otherwise the reason.
std::string load_cuda() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&at::globalContext), &info) == 0) {
    return "the folder of libtorch_cpu is unknown";
  }
  const std::filesystem::path library = std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so";
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* reason = dlerror();
    return reason != nullptr ? reason : "it could not be loaded";
  }
  try {
    return at::hasCUDA() ? "" : "torch finds no usable CUDA device";
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

}  // namespace

at::Device choose_device(const std::string& wanted, int index) {
  if (wanted == "cpu" || (wanted == "auto" && !device_present())) {
    return at::kCPU;
  }
  const std::string reason = load_cuda();
  if (reason.empty()) {
    const int devices = at::detail::getCUDAHooks().deviceCount();
    if (sees_only_own_device(devices)) {
      index = 0;
    }
    if (index >= devices) {
      throw Error(
          ErrorCode::kMissing, "device: " + wanted,
          fmt::format("process {} of this machine wants GPU {}, and torch sees {}", index, index, devices),
          fmt::format("start at most {} here, show more GPUs in CUDA_VISIBLE_DEVICES, or set device=cpu", devices));
    }
    const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    return device;
  }
  if (wanted == "cuda") {
    throw Error(ErrorCode::kMissing, "device: cuda", reason, "check with nvidia-smi, or set device=cpu");
  }
  spdlog::warn("an NVIDIA device is there but cannot be used, training on the CPU: {}", reason);
  return at::kCPU;
}

int usable_cpus(int processes, int sharers) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cpus = (sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1) / sharers;
  if (const auto text = try_read_file(host_root() / "sys/fs/cgroup/cpu.max")) {
    std::istringstream words(*text);
    double quota = 0;
    double period = 0;
    if (words >> quota >> period && period > 0) {
      cpus = std::min(cpus, static_cast<int>(std::ceil(quota / period)) / processes);
    }
  }
  return std::max(cpus, 1);
}

void configure_torch(const Config& config, int processes, int sharers) {
  constexpr std::int64_t kMostThreads = 1024;  // thousands of threads that spin on a few CPUs never finish a step
  const std::int64_t wanted = config.integer("cpu.threads");
  if (wanted > kMostThreads) {
    throw Error(ErrorCode::kInput, config.location("cpu.threads") + ": cpu.threads",
                fmt::format("expected 0 to {}, found {}", kMostThreads, wanted));
  }
  const auto threads = static_cast<int>(wanted);
  at::set_num_threads(threads > 0 ? threads : usable_cpus(processes, sharers));
  at::Context& context = at::globalContext();
  const bool tf32 = config.flag("precision.tf32");
  context.setFloat32MatmulPrecision(tf32 ? "high" : "highest");
  context.setAllowTF32CuDNN(tf32);
  context.setBenchmarkCuDNN(config.flag("cudnn.benchmark"));
  use_deterministic(context, config.flag("train.deterministic"));
  at::manual_seed(static_cast<std::uint64_t>(config.integer("seed")));
}

void synchronize(at::Device device) {
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeDevice(device.index());
  }
}

}  // namespace unidle::train
