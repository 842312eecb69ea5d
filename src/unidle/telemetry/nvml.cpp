#include "unidle/telemetry/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "unidle/telemetry/detail/nvml_api.h"
#include "unidle/telemetry/detail/nvml_gpm.h"

namespace unidle::telemetry {

namespace {

constexpr unsigned kMaxDevices = 256;

/// True when the loader's error says the file does not exist, rather than that it cannot be loaded.
bool says_absent(std::string_view complaint, std::string_view path) {
  return complaint.starts_with(path) && complaint.find("No such file") != std::string_view::npos;
}

std::unique_ptr<Nvml> refused(std::string& reason, std::string text, NvmlFailure* failure, NvmlFailure kind) {
  reason = std::move(text);
  if (failure != nullptr) {
    *failure = kind;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Nvml> Nvml::load(std::string& reason, NvmlFailure* failure) {
  const char* named = std::getenv("UNIDLE_NVML_LIBRARY");
  const char* path = named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
  auto api = std::make_unique<Api>();
  {
    const DriverCall loading("loading its library");
    api->library.reset(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  }
  if (!api->library) {
    const char* text = ::dlerror();
    const std::string complaint = text != nullptr ? text : "unknown";
    return refused(reason, fmt::format("{} cannot be loaded: {}", path, complaint), failure,
                   says_absent(complaint, path) ? NvmlFailure::kNotInstalled : NvmlFailure::kUnusable);
  }
  if (const char* missing = api->bind()) {
    return refused(reason, fmt::format("{} has no {}", path, missing), failure, NvmlFailure::kUnusable);
  }
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(api)));
  if (const int result = nvml->api_->init(); result != nvml::kSuccess) {
    const std::string text = fmt::format("nvmlInit: {}", nvml->reason(result));
    nvml->api_->shutdown.forget();  // init failed: there is nothing to shut down
    return refused(reason, text, failure, NvmlFailure::kUnusable);
  }
  return nvml;
}

Nvml::Nvml(std::unique_ptr<Api> api) : api_(std::move(api)) {}

Nvml::~Nvml() {
  gpm_.clear();
  if (events_ != nullptr && api_->event_set_free != nullptr) {
    api_->event_set_free(events_);
  }
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

Measured<std::string> Nvml::driver_version() {
  std::array<char, 96> text{};
  const int result =
      api_->driver_version != nullptr ? api_->driver_version(text.data(), text.size() - 1) : nvml::kFunctionNotFound;
  return result == nvml::kSuccess ? Measured<std::string>{text.data(), {}}
                                  : Measured<std::string>{std::nullopt, reason(result)};
}

Measured<std::string> Nvml::cuda_version() {
  int version = 0;
  const int result = api_->cuda_version != nullptr ? api_->cuda_version(&version) : nvml::kFunctionNotFound;
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {fmt::format("{}.{}", version / 1000, version % 1000 / 10), {}};
}

Measured<unsigned> Nvml::count() {
  unsigned count = 0;
  const int result = api_->count(&count);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {std::min(count, kMaxDevices), {}};
}

Measured<std::string> Nvml::name(unsigned device) {
  return ask<std::string>(device, api_->name != nullptr, [&](nvml::Device known, std::string* value) {
    std::array<char, 96> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
    const int result = api_->name(known, text.data(), text.size() - 1);
    *value = text.data();
    return result;
  });
}

Measured<std::string> Nvml::uuid(unsigned device) {
  return ask<std::string>(device, api_->uuid != nullptr, [&](nvml::Device known, std::string* value) {
    std::array<char, 96> text{};  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
    const int result = api_->uuid(known, text.data(), text.size() - 1);
    *value = text.data();
    return result;
  });
}

Measured<std::string> Nvml::capability(unsigned device) {
  return ask<std::string>(device, api_->capability != nullptr, [&](nvml::Device known, std::string* value) {
    int major = 0;
    int minor = 0;
    const int result = api_->capability(known, &major, &minor);
    *value = fmt::format("{}.{}", major, minor);
    return result;
  });
}

Measured<std::string> Nvml::pci_bus_id(unsigned device) {
  return ask<std::string>(device, api_->pci_info != nullptr, [&](nvml::Device known, std::string* value) {
    nvml::PciInfo info{};
    const int result = api_->pci_info(known, &info);
    *value = fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
    return result;
  });
}

Measured<GpuMemory> Nvml::memory(unsigned device) {
  return ask<GpuMemory>(device, true, [&](nvml::Device known, GpuMemory* value) {
    int result = nvml::kFunctionNotFound;
    if (api_->memory_v2 != nullptr) {
      nvml::MemoryV2 memory{};
      memory.version = nvml::kMemoryV2Version;
      result = api_->memory_v2(known, &memory);
      *value = {memory.total, memory.used};
    }
    if (result != nvml::kSuccess && result != nvml::kGpuIsLost && api_->memory != nullptr) {
      nvml::Memory memory{};
      result = api_->memory(known, &memory);
      *value = {memory.total, memory.used};
    }
    return result;
  });
}

Measured<double> Nvml::utilisation(unsigned device) {
  return ask<double>(device, api_->utilization != nullptr, [&](nvml::Device known, double* value) {
    nvml::Utilization rates{};
    const int result = api_->utilization(known, &rates);
    *value = rates.gpu / 100.0;
    return result;
  });
}

bool Nvml::power_by_fields(unsigned device, nvml::Device known, GpuPower& power) {
  if (api_->fields == nullptr || without_power_fields_.contains(device)) {
    return false;
  }
  std::array<nvml::FieldValue, 2> answers{};
  answers[0].field = nvml::kFieldPowerAverage;
  answers[1].field = nvml::kFieldPowerInstant;
  const int result = api_->fields(known, static_cast<int>(answers.size()), answers.data());
  const bool average = result == nvml::kSuccess && answers[0].result == nvml::kSuccess;
  const bool instant = result == nvml::kSuccess && answers[1].result == nvml::kSuccess;
  if (!average && !instant && result != nvml::kGpuIsLost && answers[0].result != nvml::kGpuIsLost) {
    without_power_fields_.insert(device);
  }
  if (instant) {
    power.instant_w = answers[1].value.number * 1e-3;  // milliwatts, as unsigned int
  }
  if (average) {
    power.w = answers[0].value.number * 1e-3;
  }
  return average;
}

Measured<GpuPower> Nvml::power(unsigned device) {
  return ask<GpuPower>(device, true, [&](nvml::Device known, GpuPower* value) {
    if (power_by_fields(device, known, *value)) {
      return nvml::kSuccess;
    }
    unsigned milliwatts = 0;
    const int result = api_->power != nullptr ? api_->power(known, &milliwatts) : nvml::kFunctionNotFound;
    value->w = milliwatts * 1e-3;
    return result;
  });
}

Measured<double> Nvml::power_limit_w(unsigned device) {
  return scaled(
      ask<unsigned>(device, api_->power_limit != nullptr, [&](auto d, unsigned* v) { return api_->power_limit(d, v); }),
      1e-3);
}

Measured<double> Nvml::power_default_limit_w(unsigned device) {
  return scaled(ask<unsigned>(device, api_->power_default_limit != nullptr,
                              [&](auto d, unsigned* v) { return api_->power_default_limit(d, v); }),
                1e-3);
}

Measured<double> Nvml::energy_j(unsigned device) {
  return scaled(ask<unsigned long long>(device, api_->energy != nullptr,
                                        [&](auto d, unsigned long long* v) { return api_->energy(d, v); }),
                1e-3);
}

Measured<double> Nvml::temperature_c(unsigned device) {
  return scaled(ask<unsigned>(device, api_->temperature != nullptr,
                              [&](auto d, unsigned* v) { return api_->temperature(d, nvml::kTemperatureGpu, v); }),
                1);
}

Measured<double> Nvml::slowdown_temperature_c(unsigned device) {
  return scaled(
      ask<unsigned>(device, api_->temperature_threshold != nullptr,
                    [&](auto d, unsigned* v) { return api_->temperature_threshold(d, nvml::kThresholdSlowdown, v); }),
      1);
}

Measured<double> Nvml::sm_clock_mhz(unsigned device) {
  return scaled(ask<unsigned>(device, api_->clock != nullptr,
                              [&](auto d, unsigned* v) { return api_->clock(d, nvml::kClockSm, v); }),
                1);
}

Measured<double> Nvml::memory_clock_mhz(unsigned device) {
  return scaled(ask<unsigned>(device, api_->clock != nullptr,
                              [&](auto d, unsigned* v) { return api_->clock(d, nvml::kClockMemory, v); }),
                1);
}

Measured<double> Nvml::sm_clock_max_mhz(unsigned device) {
  return scaled(ask<unsigned>(device, api_->max_clock != nullptr,
                              [&](auto d, unsigned* v) { return api_->max_clock(d, nvml::kClockSm, v); }),
                1);
}

Measured<std::uint64_t> Nvml::throttle_reasons(unsigned device) {
  return ask<std::uint64_t>(device, api_->throttle != nullptr, [&](nvml::Device known, std::uint64_t* value) {
    unsigned long long reasons = 0;
    const int result = api_->throttle(known, &reasons);
    *value = reasons;
    return result;
  });
}

}  // namespace unidle::telemetry
