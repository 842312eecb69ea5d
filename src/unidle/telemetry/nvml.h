// NVML, loaded at run time through declarations of our own (nvml_abi.h): no driver is needed to build.
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

struct GpuPower {
  double w = 0;                     // over a second where the device can, else at this instant
  std::optional<double> instant_w;  // where the driver tells the two apart
};

struct GpuProcess {
  std::int64_t pid = 0;  // in the driver's eyes: of the host's namespace, where it does not translate
  std::optional<std::uint64_t> used_bytes;
  std::optional<double> share;           // 0..1 of the time its kernels ran; absent where it is not known
  std::optional<unsigned> gpu_instance;  // under MIG
};

struct Pcie {
  std::optional<unsigned> generation, width;          // now; an idle link may rest at a lower generation
  std::optional<unsigned> max_generation, max_width;  // of this device in this slot
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

/// Shares 0..1 over the time since the last reading, as the hardware counts them (Hopper and later).
struct GpmActivity {
  std::optional<double> sm;         // of SMs that had work
  std::optional<double> occupancy;  // of warps that were there, of those that could
  std::optional<double> tensor;     // of time that the matrix units worked
  std::optional<double> dram;       // of the memory's bandwidth
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

/// The library. Readings never throw: a device that is lost or a call that fails is a value that is missing. A symbol
/// that an old driver lacks makes its reading missing, unless without it there is nothing to read at all.
/// One thread at a time.
class Nvml {
 public:
  /// Loads $UNIDLE_NVML_LIBRARY or libnvidia-ml.so.1. Null when it cannot be used; `reason` says why, and `failure`
  /// whether there is no driver at all (the library is in none of the loader's places) or one that does not work.
  static std::unique_ptr<Nvml> load(std::string& reason, NvmlFailure* failure = nullptr);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Measured<std::string> driver_version();
  Measured<std::string> cuda_version();  // newest that the driver serves, "12.8"

  /// How many devices there are; handles are asked for anew after a failure, so that a device may come back.
  Measured<unsigned> count();
  Measured<std::string> name(unsigned device);
  Measured<std::string> uuid(unsigned device);
  Measured<std::string> capability(unsigned device);  // "9.0"
  Measured<std::string> pci_bus_id(unsigned device);  // as sysfs writes it: "0000:1b:00.0"

  Measured<GpuMemory> memory(unsigned device);
  /// 0..1: the share of time in which some kernel ran, over the driver's last interval.
  Measured<double> utilisation(unsigned device);
  /// The same over all the time since this was last asked, out of the driver's buffer of samples. Missing at first.
  Measured<double> utilisation_since(unsigned device);
  /// One call of the driver where it can answer both.
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
  /// The driver looks for 20 ms and the caller waits: not to be asked for often.
  Measured<double> pcie_bytes_s(unsigned device, bool to_device);
  /// The driver counts the device and tells this user or container nothing of it. Others may use it.
  bool hidden(unsigned device);
  GpmActivity gpm(unsigned device, std::int64_t t_ns);
  /// GPM has begun on this device and was not refused: its first answer takes two samples.
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
  /// Critical errors that came since this was last asked; the first call starts to listen.
  std::vector<Xid> xids();

 private:
  struct Api;
  struct Gpm;
  explicit Nvml(std::unique_ptr<Api> api);

  nvml::Device handle(unsigned device);
  void note_failure(unsigned device, int result);
  std::string reason(int result) const;
  /// Calls `call(handle, &value)` when `present`; the value, or why there is none.
  template <typename Value, typename Call>
  Measured<Value> ask(unsigned device, bool present, Call call);
  int list_processes(nvml::Device device, std::vector<GpuProcess>& found);
  void add_shares(unsigned device, std::vector<GpuProcess>& processes);
  bool power_by_fields(unsigned device, nvml::Device known, GpuPower& power);
  std::optional<MigDevice> mig_device(nvml::Device slice);
  GpmActivity gpm_between(Gpm& state, nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t t_ns);

  std::unique_ptr<Api> api_;
  std::vector<nvml::Device> handles_;                  // by index; null where not known
  std::map<unsigned, unsigned long long> samples_us_;  // by device: the last utilisation sample that was seen
  std::map<unsigned, unsigned long long> processes_us_;
  // What a device has said that it does not support is not asked again: at ten readings a second each call counts.
  std::set<unsigned> without_samples_;
  std::set<unsigned> without_power_fields_;
  std::vector<nvml::Sample> sample_buffer_;
  std::map<std::pair<unsigned, unsigned>, std::unique_ptr<Gpm>> gpm_;  // by device and GPU instance
  nvml::EventSet events_ = nullptr;
  bool events_tried_ = false;
};

}  // namespace unidle::telemetry
