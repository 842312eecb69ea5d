// The GPUs of this machine, of any vendor: their properties and current state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/files.h"
#include "unidle/telemetry/nvml.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::telemetry {

struct GpuFacts {
  unsigned index = 0;
  bool hidden = false;  // no permission: nothing else is known
  std::string name;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::string> capability;  // "9.0"
  std::string kind = "cuda";              // or "rocm"
  std::optional<std::string> uuid;
  std::optional<std::string> pci_bus_id;
  std::optional<int> numa_node;
  std::optional<std::string> local_cpus;  // a CPU list: the CPUs near the device
  std::optional<double> power_limit_w;
  std::optional<double> power_default_limit_w;  // factory limit of the board
  std::optional<double> sm_clock_max_mhz;
  Pcie pcie;
  std::vector<MigDevice> mig;
};

/// The current state of a device. Shares are 0..1. Values the device does not report are absent.
struct GpuReading {
  std::optional<double> utilisation;  // share of time with a running kernel, since the last reading if possible
  std::optional<double> sm_activity, sm_occupancy, tensor_activity, dram_activity;
  std::optional<double> memory_bytes;
  std::optional<double> power_w, power_instant_w, power_limit_w, energy_j;
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz, memory_clock_mhz;
  std::optional<double> throttle_reasons;  // a bit field: nvml::kReason...
  std::optional<double> pcie_generation, pcie_width, pcie_tx_bytes_s, pcie_rx_bytes_s;
  std::optional<double> ecc_uncorrected;
  std::optional<double> xid;  // code of a critical error since the last reading
};

/// One column of a GpuReading and its names in series, Prometheus metrics and CSV.
struct GpuColumn {
  std::string_view series;  // "gpu.utilisation"
  std::string_view unit;
  std::optional<double> GpuReading::*value;
};
const std::vector<GpuColumn>& gpu_columns();

/// Reads all devices of one vendor. Not thread-safe.
class GpuReader {
 public:
  struct Subject {
    std::string name;  // "gpu0", or "gpu0/mig1" for a slice
    GpuReading reading;
    unsigned device = 0;
    bool slice = false;
  };

  virtual ~GpuReader() = default;
  virtual std::vector<GpuFacts> facts() = 0;
  /// Reads every device. Without `slow`, reads fast-changing values only: utilisation, activity, power, memory. With
  /// it, reads everything; the caller may wait 20 ms per device.
  virtual std::vector<Subject> read(std::int64_t t_ns, bool slow) = 0;
  /// Returns the processes that compute on a device, or nothing when that is unknown.
  virtual std::optional<std::vector<GpuProcess>> processes(unsigned device) = 0;
};

std::unique_ptr<GpuReader> nvml_reader(std::unique_ptr<Nvml> nvml);
/// Reads AMD devices through sysfs; null when there are none. Indices start at `first_index`.
std::unique_ptr<GpuReader> amd_reader(unsigned first_index = 0, const std::filesystem::path& root = host_root());

/// All readable devices, and whether the list is complete.
struct GpuInventory {
  std::vector<std::unique_ptr<GpuReader>> readers;
  /// False when a driver does not answer: the number of devices is then unknown.
  bool known = true;
  NvmlFailure nvml_failure = NvmlFailure::kNone;
  std::string problem;  // why NVML cannot be used; also set when it is not installed
  std::optional<std::string> driver_version;
  std::optional<std::string> cuda_version;
};
GpuInventory find_gpus(const std::filesystem::path& root = host_root());

/// Adds the NUMA node and nearby CPUs of a PCI device, if sysfs has them.
void add_locality(GpuFacts& facts, const std::filesystem::path& root = host_root());

/// Empty when NVML finds no device or does not answer.
std::vector<GpuFacts> read_gpu_facts(Nvml& nvml);

/// The columns above as series; the subject comes from the reader. With the root of the watched tree, adds the tree's
/// own memory (gpu.own_memory, bytes), that of other processes (gpu.foreign_memory, bytes) and, where the driver
/// reports it, their share of time (gpu.foreign_share, 0..1).
std::unique_ptr<Source> gpu_source(std::unique_ptr<GpuReader> reader, std::optional<std::int64_t> root_pid = {});
std::unique_ptr<Source> gpu_source(std::unique_ptr<Nvml> nvml);

/// True for environment variables that limit which GPUs a program sees.
bool shows_some_gpus(std::string_view variable);
/// True when such a value hides all GPUs: it is empty, or its first entry is not a device (-1, or Slurm's NoDevFiles).
bool hides_every_gpu(std::string_view value);

/// Names the bits of throttle_reasons, except the harmless ones (idle, chosen clocks).
std::vector<std::string_view> throttle_names(std::uint64_t reasons);

}  // namespace unidle::telemetry
