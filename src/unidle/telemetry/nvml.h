// NVML, loaded at run time through declarations of our own: no driver and no header of NVIDIA's is needed to build.
// The layouts are those of NVML's public ABI, which never changes for a versioned function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unidle::telemetry {

namespace nvml {

using Device = void*;

/// nvmlReturn_t, as far as told apart.
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;
constexpr int kGpuIsLost = 15;

constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2Version = sizeof(MemoryV2) | (2U << 24);
struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};
struct ProcessV1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long used_bytes;
};
struct Process {  // nvmlProcessInfo_v2_t, which _v2 and _v3 of the function fill
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);
static_assert(sizeof(ProcessV1) == 16 && sizeof(Process) == 24 && offsetof(Process, used_bytes) == 8);

}  // namespace nvml

/// A value, or why there is none.
template <typename Value>
struct Measured {
  std::optional<Value> value;
  std::string reason;  // empty when there is a value

  explicit operator bool() const { return value.has_value(); }
  const Value& operator*() const { return *value; }
};

struct GpuMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t used_bytes = 0;
};

struct GpuProcess {
  std::int64_t pid = 0;
  std::optional<std::uint64_t> used_bytes;
};

/// The library. Readings never throw: a device that is lost or a call that fails is a value that is missing. A symbol
/// that an old driver lacks makes its reading missing, unless without it there is nothing to read at all.
/// One thread at a time.
class Nvml {
 public:
  /// Loads $UNIDLE_NVML_LIBRARY or libnvidia-ml.so.1. Null when it cannot be used; `reason` says why.
  static std::unique_ptr<Nvml> load(std::string& reason);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// How many devices there are; handles are asked for anew after a failure, so that a device may come back.
  Measured<unsigned> count();
  Measured<std::string> name(unsigned device);
  Measured<std::string> capability(unsigned device);  // "9.0"
  Measured<GpuMemory> memory(unsigned device);
  Measured<double> utilisation(unsigned device);  // 0..1: the share of time in which some kernel ran
  Measured<double> power_w(unsigned device);
  Measured<double> power_limit_w(unsigned device);
  Measured<double> temperature_c(unsigned device);
  Measured<double> sm_clock_mhz(unsigned device);
  Measured<double> memory_clock_mhz(unsigned device);
  Measured<std::vector<GpuProcess>> compute_processes(unsigned device);

 private:
  struct Api;
  explicit Nvml(std::unique_ptr<Api> api);

  nvml::Device handle(unsigned device);
  void note_failure(unsigned device, int result);
  std::string reason(int result) const;
  Measured<unsigned> number(unsigned device, bool present, const std::function<int(nvml::Device, unsigned*)>& call);
  static Measured<double> scaled(const Measured<unsigned>& measured, double factor);
  template <typename Entry>
  int list_processes(nvml::Device device, int (*call)(nvml::Device, unsigned*, Entry*), std::vector<GpuProcess>& found);

  std::unique_ptr<Api> api_;
  std::vector<nvml::Device> handles_;  // by index; null where not known
};

}  // namespace unidle::telemetry
