// NVML's functions and their calls. Private to the Nvml class.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <vector>

#include "unidle/base/handle.h"
#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/nvml.h"

namespace unidle::telemetry {

struct LibraryTraits {
  using Type = void*;
  static Type invalid() { return nullptr; }
  static void close(Type library) { ::dlclose(library); }
};

/// A function of the library under all its names, newest first; empty when the driver lacks it. Calls are tracked by
/// name, so that a hang can be reported.
template <typename Signature>
class Symbol;
template <typename Result, typename... Arguments>
class Symbol<Result(Arguments...)> {
 public:
  /// Adds the version of this name if the library has it. `name` must be in static storage.
  bool find(void* library, const char* name) {
    if (auto* function = reinterpret_cast<Result (*)(Arguments...)>(::dlsym(library, name))) {
      versions_.push_back({function, name});
    }
    return !versions_.empty();
  }
  void forget() { versions_.clear(); }
  bool operator==(std::nullptr_t) const { return versions_.empty(); }
  /// The name of the version in use. REQUIRES: not empty.
  std::string_view name() const { return versions_[used_].name; }
  /// A library may have a function that its driver does not support. The previous version is then used from now on.
  Result operator()(Arguments... arguments) {
    if constexpr (std::is_same_v<Result, int>) {
      while (used_ + 1 < versions_.size()) {
        if (const int result = call(arguments...); result != nvml::kFunctionNotFound) {
          return result;
        }
        ++used_;
      }
    }
    return call(arguments...);
  }

 private:
  struct Version {
    Result (*function)(Arguments...);
    const char* name;
  };
  Result call(Arguments... arguments) const {
    const DriverCall under_way(versions_[used_].name);
    return versions_[used_].function(arguments...);
  }

  std::vector<Version> versions_;
  std::size_t used_ = 0;
};

struct Nvml::Api {
  using Number = Symbol<int(nvml::Device, unsigned*)>;
  using Big = Symbol<int(nvml::Device, unsigned long long*)>;
  using Text = Symbol<int(nvml::Device, char*, unsigned)>;
  using Kind = Symbol<int(nvml::Device, unsigned, unsigned*)>;
  using Pair = Symbol<int(nvml::Device, unsigned*, unsigned*)>;

  UniqueHandle<LibraryTraits> library;
  // Required.
  Symbol<int()> init;
  Symbol<int(unsigned*)> count;
  Symbol<int(unsigned, nvml::Device*)> handle_by_index;
  // Optional: empty for older drivers.
  Symbol<int()> shutdown;
  Symbol<const char*(int)> error_string;
  Symbol<int(char*, unsigned)> driver_version;
  Symbol<int(int*)> cuda_version;
  Text name;
  Text uuid;
  Symbol<int(nvml::Device, nvml::PciInfo*)> pci_info;
  Symbol<int(nvml::Device, int*, int*)> capability;
  Symbol<int(nvml::Device, nvml::MemoryV2*)> memory_v2;
  Symbol<int(nvml::Device, nvml::Memory*)> memory;
  Symbol<int(nvml::Device, nvml::Utilization*)> utilization;
  Symbol<int(nvml::Device, unsigned, unsigned long long, unsigned*, unsigned*, nvml::Sample*)> samples;
  Number power;
  Number power_limit;
  Number power_default_limit;
  Big energy;
  Symbol<int(nvml::Device, int, nvml::FieldValue*)> fields;
  Kind temperature;
  Kind temperature_threshold;
  Kind clock;
  Kind max_clock;
  Big throttle;
  Number pcie_generation;
  Number pcie_max_generation;
  Number pcie_width;
  Number pcie_max_width;
  Kind pcie_throughput;
  Pair ecc_mode;
  Symbol<int(nvml::Device, unsigned, unsigned, unsigned long long*)> ecc_errors;
  Symbol<int(nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*)> remapped_rows;
  Number persistence;
  Number compute_mode;
  Pair mig_mode;
  Number mig_count;
  Symbol<int(nvml::Device, unsigned, nvml::Device*)> mig_handle;
  Number gpu_instance;
  Symbol<int(nvml::Device, nvml::Attributes*)> attributes;
  /// Its entry size depends on the driver, see nvml::Process.
  Symbol<int(nvml::Device, unsigned*, void*)> processes;
  Symbol<int(nvml::Device, nvml::ProcessUtilization*, unsigned*, unsigned long long)> process_utilization;
  Symbol<int(nvml::EventSet*)> event_set_create;
  Symbol<int(nvml::EventSet)> event_set_free;
  Symbol<int(nvml::Device, unsigned long long, nvml::EventSet)> event_register;
  Symbol<int(nvml::EventSet, nvml::EventData*, unsigned)> event_wait;
  Symbol<int(nvml::Device, nvml::GpmSupport*)> gpm_support;
  Symbol<int(nvml::GpmSample*)> gpm_alloc;
  Symbol<int(nvml::GpmSample)> gpm_free;
  Symbol<int(nvml::Device, nvml::GpmSample)> gpm_sample;
  Symbol<int(nvml::Device, unsigned, nvml::GpmSample)> gpm_mig_sample;
  Symbol<int(nvml::GpmMetrics*)> gpm_metrics;

  /// Returns the first required symbol that is missing, or null.
  const char* bind();
  /// Documented size of an entry for the function that lists processes.
  std::size_t process_bytes() const;

 private:
  template <typename Signature>
  bool find(Symbol<Signature>& symbol, const char* word) {
    return symbol.find(library.get(), word);
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

/// Converts a number to other units.
template <typename Value>
Measured<double> scaled(const Measured<Value>& measured, double factor) {
  return {measured ? std::optional(static_cast<double>(*measured) * factor) : std::nullopt, measured.reason};
}

}  // namespace unidle::telemetry
