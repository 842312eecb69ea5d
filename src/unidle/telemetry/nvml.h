// NVML, loaded at run time through our own declarations (nvml_abi.h): building needs no driver.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unidle/telemetry/nvml_abi.h"

namespace unidle::telemetry {

/// A value, or the reason why it is missing.
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

struct GpuPower {
  double w = 0;                     // averaged over a second if the device can, otherwise instantaneous
  std::optional<double> instant_w;  // if the driver reports both
};

struct GpuProcess {
  std::int64_t pid = 0;  // as the driver sees it: of the host's namespace if it does not translate
  std::optional<std::uint64_t> used_bytes;
  std::optional<double> share;           // 0..1 of the time its kernels ran; absent when unknown
  std::optional<unsigned> gpu_instance;  // under MIG
};

struct Pcie {
  std::optional<unsigned> generation, width;          // current; an idle link may drop to a lower generation
  std::optional<unsigned> max_generation, max_width;  // maximum of this device in this slot
};

/// One slice of a device in MIG mode.
struct MigDevice {
  unsigned index = 0;
  std::string name;
  std::string uuid;
  std::optional<unsigned> gpu_instance;
  std::optional<unsigned> multiprocessors;
  std::optional<GpuMemory> memory;
};

/// Shares 0..1 since the last reading, from hardware counters (Hopper and later).
struct GpmActivity {
  std::optional<double> sm;         // SMs with work
  std::optional<double> occupancy;  // resident warps, relative to the maximum
  std::optional<double> tensor;     // time the matrix units were active
  std::optional<double> dram;       // bandwidth of the device memory
  std::optional<double> pcie_tx_bytes_s;
  std::optional<double> pcie_rx_bytes_s;
};

struct Xid {
  unsigned device = 0;
  std::uint64_t code = 0;
};

template <typename Signature>
class Symbol;

enum class NvmlFailure { kNone, kNotInstalled, kUnusable, kNoAnswer };

/// The library. Readings never throw: a lost device or a failed call gives a missing value. A symbol that an old driver
/// lacks makes only its reading missing, unless it is required. Not thread-safe.
class Nvml {
 public:
  /// Loads $UNIDLE_NVML_LIBRARY or libnvidia-ml.so.1. Returns null when it cannot be used; `reason` says why, and
  /// `failure` whether no driver was found (the loader does not find the library) or it does not work.
  static std::unique_ptr<Nvml> load(std::string& reason, NvmlFailure* failure = nullptr);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Measured<std::string> driver_version();
  Measured<std::string> cuda_version();  // newest version that the driver supports, "12.8"

  /// Number of devices. Requests the handles again after a failure, so that a device may come back.
  Measured<unsigned> count();
  Measured<std::string> name(unsigned device);
  Measured<std::string> uuid(unsigned device);
  Measured<std::string> capability(unsigned device);  // "9.0"
  Measured<std::string> pci_bus_id(unsigned device);  // as sysfs writes it: "0000:1b:00.0"

  Measured<GpuMemory> memory(unsigned device);
  /// Share of time in which some kernel ran, 0..1, over the driver's last interval.
  Measured<double> utilisation(unsigned device);
  /// The same since the last call, from the driver's sample buffer. Missing at the first call.
  Measured<double> utilisation_since(unsigned device);
  /// Uses a single driver call if it can answer both.
  Measured<GpuPower> power(unsigned device);
  Measured<double> power_limit_w(unsigned device);
  Measured<double> power_default_limit_w(unsigned device);
  Measured<double> energy_j(unsigned device);  // since the driver was loaded
  Measured<double> temperature_c(unsigned device);
  Measured<double> slowdown_temperature_c(unsigned device);
  Measured<double> sm_clock_mhz(unsigned device);
  Measured<double> memory_clock_mhz(unsigned device);
  Measured<double> sm_clock_max_mhz(unsigned device);
  Measured<std::uint64_t> throttle_reasons(unsigned device);  // nvml::kReason...

  Pcie pcie(unsigned device);
  /// The driver measures for 20 ms and blocks the caller: do not call it often.
  Measured<double> pcie_bytes_s(unsigned device, bool to_device);
  /// True when the driver lists the device but denies this user or container access. Other devices may be usable.
  bool hidden(unsigned device);
  GpmActivity gpm(unsigned device, std::int64_t t_ns);
  /// True when GPM has started on this device and was not refused; its first answer takes two samples.
  bool gpm_usable(unsigned device) const;
  GpmActivity gpm_mig(unsigned device, unsigned gpu_instance, std::int64_t t_ns);

  Measured<bool> ecc_on(unsigned device);
  Measured<std::uint64_t> ecc_uncorrected(unsigned device);  // since the driver was loaded
  Measured<bool> rows_pending(unsigned device);              // repaired only by a reset
  Measured<bool> rows_failed(unsigned device);               // could not be repaired
  Measured<bool> persistence_mode(unsigned device);
  Measured<unsigned> compute_mode(unsigned device);  // 0 default, 2 prohibited, 3 exclusive process
  Measured<bool> mig_on(unsigned device);
  std::vector<MigDevice> mig_devices(unsigned device);
  Measured<std::vector<GpuProcess>> compute_processes(unsigned device);
  /// Returns the critical errors since the last call; the first call starts listening.
  std::vector<Xid> xids();

 private:
  struct Api;
  struct Gpm;
  explicit Nvml(std::unique_ptr<Api> api);

  nvml::Device handle(unsigned device);
  void note_failure(unsigned device, int result);
  std::string reason(int result) const;
  /// Calls `call(handle, &value)` when `present`; returns the value, or why it is missing.
  template <typename Value, typename Call>
  Measured<Value> ask(unsigned device, bool present, Call call);
  int list_processes(nvml::Device device, std::vector<GpuProcess>& found);
  void add_shares(unsigned device, std::vector<GpuProcess>& processes);
  bool power_by_fields(unsigned device, nvml::Device known, GpuPower& power);
  std::optional<MigDevice> mig_device(nvml::Device slice);
  GpmActivity gpm_between(Gpm& state, nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t t_ns);

  std::unique_ptr<Api> api_;
  std::vector<nvml::Device> handles_;                  // by index; null when unknown
  std::map<unsigned, unsigned long long> samples_us_;  // by device: time of the last utilisation sample
  std::map<unsigned, unsigned long long> processes_us_;
  // Unsupported readings of a device are not requested again: at ten readings a second each call counts.
  std::set<unsigned> without_samples_;
  std::set<unsigned> without_power_fields_;
  std::vector<nvml::Sample> sample_buffer_;
  std::map<std::pair<unsigned, unsigned>, std::unique_ptr<Gpm>> gpm_;  // by device and GPU instance
  nvml::EventSet events_ = nullptr;
  bool events_tried_ = false;
};

}  // namespace unidle::telemetry
