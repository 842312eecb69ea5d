#include "unidle/telemetry/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "unidle/base/handle.h"

namespace unidle::telemetry {

namespace {

struct LibraryTraits {
  using Type = void*;
  static Type invalid() { return nullptr; }
  static void close(Type library) { ::dlclose(library); }
};

constexpr unsigned kMaxDevices = 256;
constexpr unsigned kMaxProcesses = 4096;

}  // namespace

struct Nvml::Api {
  using NumberCall = int (*)(nvml::Device, unsigned*);

  UniqueHandle<LibraryTraits> library;
  // Required.
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, nvml::Device*) = nullptr;
  // Optional: null where the driver is older.
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*name)(nvml::Device, char*, unsigned) = nullptr;
  int (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*capability)(nvml::Device, int*, int*) = nullptr;
  int (*temperature)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*clock)(nvml::Device, unsigned, unsigned*) = nullptr;
  NumberCall power = nullptr;
  NumberCall power_limit = nullptr;
  int (*processes_v3)(nvml::Device, unsigned*, nvml::Process*) = nullptr;
  int (*processes_v2)(nvml::Device, unsigned*, nvml::Process*) = nullptr;
  int (*processes_v1)(nvml::Device, unsigned*, nvml::ProcessV1*) = nullptr;

  template <typename Function>
  bool find(Function& function, const char* symbol) {
    if (function == nullptr) {
      function = reinterpret_cast<Function>(::dlsym(library.get(), symbol));
    }
    return function != nullptr;
  }

  /// The first required symbol that is missing, or null.
  const char* bind() {
    find(init, "nvmlInit_v2");
    find(count, "nvmlDeviceGetCount_v2");
    find(handle_by_index, "nvmlDeviceGetHandleByIndex_v2");
    if (!find(init, "nvmlInit")) {
      return "nvmlInit";
    }
    if (!find(count, "nvmlDeviceGetCount")) {
      return "nvmlDeviceGetCount";
    }
    if (!find(handle_by_index, "nvmlDeviceGetHandleByIndex")) {
      return "nvmlDeviceGetHandleByIndex";
    }
    find(shutdown, "nvmlShutdown");
    find(error_string, "nvmlErrorString");
    find(name, "nvmlDeviceGetName");
    find(memory_v2, "nvmlDeviceGetMemoryInfo_v2");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(utilization, "nvmlDeviceGetUtilizationRates");
    find(capability, "nvmlDeviceGetCudaComputeCapability");
    find(temperature, "nvmlDeviceGetTemperature");
    find(clock, "nvmlDeviceGetClockInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    find(processes_v3, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2");
    find(processes_v1, "nvmlDeviceGetComputeRunningProcesses");
    return nullptr;
  }
};

std::unique_ptr<Nvml> Nvml::load(std::string& reason) {
  const char* named = std::getenv("UNIDLE_NVML_LIBRARY");
  const char* path = named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
  auto api = std::make_unique<Api>();
  api->library.reset(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  if (!api->library) {
    const char* text = ::dlerror();
    reason = fmt::format("{} cannot be loaded: {}", path, text != nullptr ? text : "unknown");
    return nullptr;
  }
  if (const char* missing = api->bind()) {
    reason = fmt::format("{} has no {}", path, missing);
    return nullptr;
  }
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(api)));
  if (const int result = nvml->api_->init(); result != nvml::kSuccess) {
    reason = fmt::format("nvmlInit: {}", nvml->reason(result));
    nvml->api_->shutdown = nullptr;  // nothing to shut down
    return nullptr;
  }
  return nvml;
}

Nvml::Nvml(std::unique_ptr<Api> api) : api_(std::move(api)) {}

Nvml::~Nvml() {
  if (api_->shutdown != nullptr) {
    api_->shutdown();
  }
}

std::string Nvml::reason(int result) const {
  const char* text = api_->error_string != nullptr ? api_->error_string(result) : nullptr;
  return text != nullptr ? fmt::format("{} ({})", text, result) : fmt::format("NVML error {}", result);
}

nvml::Device Nvml::handle(unsigned device) {
  if (device >= kMaxDevices) {
    return nullptr;
  }
  if (device >= handles_.size()) {
    handles_.resize(device + 1, nullptr);
  }
  nvml::Device& known = handles_[device];
  if (known == nullptr && api_->handle_by_index(device, &known) != nvml::kSuccess) {
    known = nullptr;
  }
  return known;
}

void Nvml::note_failure(unsigned device, int result) {
  if (result == nvml::kGpuIsLost && device < handles_.size()) {
    handles_[device] = nullptr;
  }
}

Measured<unsigned> Nvml::count() {
  unsigned count = 0;
  const int result = api_->count(&count);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {std::min(count, kMaxDevices), {}};
}

Measured<unsigned> Nvml::number(unsigned device, bool present,
                                const std::function<int(nvml::Device, unsigned*)>& call) {
  if (!present) {
    return {std::nullopt, reason(nvml::kFunctionNotFound)};
  }
  const nvml::Device known = handle(device);
  if (known == nullptr) {
    return {std::nullopt, "the device does not answer"};
  }
  unsigned value = 0;
  const int result = call(known, &value);
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {value, {}};
}

Measured<std::string> Nvml::name(unsigned device) {
  const nvml::Device known = handle(device);
  if (known == nullptr || api_->name == nullptr) {
    return {std::nullopt, known == nullptr ? "the device does not answer" : reason(nvml::kFunctionNotFound)};
  }
  std::array<char, 96> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  const int result = api_->name(known, text.data(), text.size() - 1);
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {std::string(text.data()), {}};
}

Measured<std::string> Nvml::capability(unsigned device) {
  const nvml::Device known = handle(device);
  if (known == nullptr || api_->capability == nullptr) {
    return {std::nullopt, known == nullptr ? "the device does not answer" : reason(nvml::kFunctionNotFound)};
  }
  int major = 0;
  int minor = 0;
  const int result = api_->capability(known, &major, &minor);
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {fmt::format("{}.{}", major, minor), {}};
}

Measured<GpuMemory> Nvml::memory(unsigned device) {
  const nvml::Device known = handle(device);
  if (known == nullptr) {
    return {std::nullopt, "the device does not answer"};
  }
  int result = nvml::kFunctionNotFound;
  if (api_->memory_v2 != nullptr) {
    nvml::MemoryV2 memory{};
    memory.version = nvml::kMemoryV2Version;
    result = api_->memory_v2(known, &memory);
    if (result == nvml::kSuccess) {
      return {GpuMemory{memory.total, memory.used}, {}};
    }
  }
  if (api_->memory != nullptr && result != nvml::kGpuIsLost) {
    nvml::Memory memory{};
    result = api_->memory(known, &memory);
    if (result == nvml::kSuccess) {
      return {GpuMemory{memory.total, memory.used}, {}};
    }
  }
  note_failure(device, result);
  return {std::nullopt, reason(result)};
}

Measured<double> Nvml::utilisation(unsigned device) {
  const nvml::Device known = handle(device);
  if (known == nullptr || api_->utilization == nullptr) {
    return {std::nullopt, known == nullptr ? "the device does not answer" : reason(nvml::kFunctionNotFound)};
  }
  nvml::Utilization rates{};
  const int result = api_->utilization(known, &rates);
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {rates.gpu / 100.0, {}};
}

Measured<double> Nvml::scaled(const Measured<unsigned>& measured, double factor) {
  return {measured ? std::optional(*measured * factor) : std::nullopt, measured.reason};
}

Measured<double> Nvml::power_w(unsigned device) {
  return scaled(number(device, api_->power != nullptr, [&](auto d, unsigned* v) { return api_->power(d, v); }), 1e-3);
}

Measured<double> Nvml::power_limit_w(unsigned device) {
  return scaled(
      number(device, api_->power_limit != nullptr, [&](auto d, unsigned* v) { return api_->power_limit(d, v); }), 1e-3);
}

Measured<double> Nvml::temperature_c(unsigned device) {
  return scaled(number(device, api_->temperature != nullptr,
                       [&](auto d, unsigned* v) { return api_->temperature(d, nvml::kTemperatureGpu, v); }),
                1.0);
}

Measured<double> Nvml::sm_clock_mhz(unsigned device) {
  return scaled(
      number(device, api_->clock != nullptr, [&](auto d, unsigned* v) { return api_->clock(d, nvml::kClockSm, v); }),
      1.0);
}

Measured<double> Nvml::memory_clock_mhz(unsigned device) {
  return scaled(number(device, api_->clock != nullptr,
                       [&](auto d, unsigned* v) { return api_->clock(d, nvml::kClockMemory, v); }),
                1.0);
}

template <typename Entry>
int Nvml::list_processes(nvml::Device device, int (*call)(nvml::Device, unsigned*, Entry*),
                         std::vector<GpuProcess>& found) {
  // Room to spare: some drivers fill an entry longer than the one they document.
  std::vector<Entry> entries;
  int result = nvml::kInsufficientSize;
  for (unsigned room = 64; result == nvml::kInsufficientSize && room <= kMaxProcesses; room *= 4) {
    entries.assign(std::size_t{2} * room, Entry{});
    unsigned count = room;
    result = call(device, &count, entries.data());
    entries.resize(result == nvml::kSuccess ? std::min(count, room) : 0);
  }
  constexpr unsigned long long kNotAvailable = ~0ULL;
  for (const Entry& entry : entries) {
    const bool known = entry.used_bytes != kNotAvailable;
    found.push_back(
        {static_cast<std::int64_t>(entry.pid), known ? std::optional<std::uint64_t>(entry.used_bytes) : std::nullopt});
  }
  return result;
}

Measured<std::vector<GpuProcess>> Nvml::compute_processes(unsigned device) {
  const nvml::Device known = handle(device);
  if (known == nullptr) {
    return {std::nullopt, "the device does not answer"};
  }
  std::vector<GpuProcess> found;
  int result = nvml::kFunctionNotFound;
  for (const auto call : {api_->processes_v3, api_->processes_v2}) {
    if (call != nullptr && result == nvml::kFunctionNotFound) {
      result = list_processes(known, call, found);
    }
  }
  if (result == nvml::kFunctionNotFound && api_->processes_v1 != nullptr) {
    result = list_processes(known, api_->processes_v1, found);
  }
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {std::move(found), {}};
}

}  // namespace unidle::telemetry
