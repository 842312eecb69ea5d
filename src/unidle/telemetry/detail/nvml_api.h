// The library's functions, and how they are called. Private to the Nvml class.
#pragma once

#include <dlfcn.h>

#include "unidle/base/handle.h"
#include "unidle/telemetry/nvml.h"

namespace unidle::telemetry {

struct LibraryTraits {
  using Type = void*;
  static Type invalid() { return nullptr; }
  static void close(Type library) { ::dlclose(library); }
};

struct Nvml::Api {
  using Number = int (*)(nvml::Device, unsigned*);
  using Big = int (*)(nvml::Device, unsigned long long*);
  using Text = int (*)(nvml::Device, char*, unsigned);
  using Kind = int (*)(nvml::Device, unsigned, unsigned*);
  using Pair = int (*)(nvml::Device, unsigned*, unsigned*);

  UniqueHandle<LibraryTraits> library;
  // Required.
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, nvml::Device*) = nullptr;
  // Optional: null where the driver is older.
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  Text name = nullptr;
  Text uuid = nullptr;
  int (*pci_info)(nvml::Device, nvml::PciInfo*) = nullptr;
  int (*capability)(nvml::Device, int*, int*) = nullptr;
  int (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*samples)(nvml::Device, unsigned, unsigned long long, unsigned*, unsigned*, nvml::Sample*) = nullptr;
  Number power = nullptr;
  Number power_limit = nullptr;
  Number power_default_limit = nullptr;
  Big energy = nullptr;
  int (*fields)(nvml::Device, int, nvml::FieldValue*) = nullptr;
  Kind temperature = nullptr;
  Kind temperature_threshold = nullptr;
  Kind clock = nullptr;
  Kind max_clock = nullptr;
  Big throttle = nullptr;
  Number pcie_generation = nullptr;
  Number pcie_max_generation = nullptr;
  Number pcie_width = nullptr;
  Number pcie_max_width = nullptr;
  Kind pcie_throughput = nullptr;
  Pair ecc_mode = nullptr;
  int (*ecc_errors)(nvml::Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*remapped_rows)(nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Number persistence = nullptr;
  Number compute_mode = nullptr;
  Pair mig_mode = nullptr;
  Number mig_count = nullptr;
  int (*mig_handle)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  Number gpu_instance = nullptr;
  int (*attributes)(nvml::Device, nvml::Attributes*) = nullptr;
  int (*processes_v3)(nvml::Device, unsigned*, nvml::Process*) = nullptr;
  int (*processes_v2)(nvml::Device, unsigned*, nvml::Process*) = nullptr;
  int (*processes_v1)(nvml::Device, unsigned*, nvml::ProcessV1*) = nullptr;
  int (*process_utilization)(nvml::Device, nvml::ProcessUtilization*, unsigned*, unsigned long long) = nullptr;
  int (*event_set_create)(nvml::EventSet*) = nullptr;
  int (*event_set_free)(nvml::EventSet) = nullptr;
  int (*event_register)(nvml::Device, unsigned long long, nvml::EventSet) = nullptr;
  int (*event_wait)(nvml::EventSet, nvml::EventData*, unsigned) = nullptr;
  int (*gpm_support)(nvml::Device, nvml::GpmSupport*) = nullptr;
  int (*gpm_alloc)(nvml::GpmSample*) = nullptr;
  int (*gpm_free)(nvml::GpmSample) = nullptr;
  int (*gpm_sample)(nvml::Device, nvml::GpmSample) = nullptr;
  int (*gpm_mig_sample)(nvml::Device, unsigned, nvml::GpmSample) = nullptr;
  int (*gpm_metrics)(nvml::GpmMetrics*) = nullptr;

  /// The first required symbol that is missing, or null.
  const char* bind();

 private:
  template <typename Function>
  bool find(Function& function, const char* symbol) {
    if (function == nullptr) {
      function = reinterpret_cast<Function>(::dlsym(library.get(), symbol));
    }
    return function != nullptr;
  }
  void bind_readings();
  void bind_states();
};

template <typename Value, typename Call>
Measured<Value> Nvml::ask(unsigned device, bool present, Call call) {
  if (!present) {
    return {std::nullopt, reason(nvml::kFunctionNotFound)};
  }
  const nvml::Device known = handle(device);
  if (known == nullptr) {
    return {std::nullopt, "the device does not answer"};
  }
  Value value{};
  const int result = call(known, &value);
  note_failure(device, result);
  if (result != nvml::kSuccess) {
    return {std::nullopt, reason(result)};
  }
  return {std::move(value), {}};
}

/// A number in other units.
template <typename Value>
Measured<double> scaled(const Measured<Value>& measured, double factor) {
  return {measured ? std::optional(static_cast<double>(*measured) * factor) : std::nullopt, measured.reason};
}

}  // namespace unidle::telemetry
