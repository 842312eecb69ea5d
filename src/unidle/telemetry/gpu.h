// The GPUs of this machine, whoever made them: what they are and what they do now.
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
  bool hidden = false;  // by permission: nothing else is known
  std::string name;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::string> capability;  // "9.0"
  std::string kind = "cuda";              // or "rocm"
  std::optional<std::string> uuid;
  std::optional<std::string> pci_bus_id;
  std::optional<int> numa_node;
  std::optional<std::string> local_cpus;  // a CPU list: those next to it
  std::optional<double> power_limit_w;
  std::optional<double> power_default_limit_w;  // of the board as it was made
  std::optional<double> sm_clock_max_mhz;
  Pcie pcie;
  std::vector<MigDevice> mig;
};

/// What a device does now. Shares are 0..1. What it does not tell is absent.
struct GpuReading {
  std::optional<double> utilisation;  // some kernel ran, since the last reading where the driver keeps samples
  std::optional<double> sm_activity, sm_occupancy, tensor_activity, dram_activity;
  std::optional<double> memory_bytes;
  std::optional<double> power_w, power_instant_w, power_limit_w, energy_j;
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz, memory_clock_mhz;
  std::optional<double> throttle_reasons;  // a bit field: nvml::kReason...
  std::optional<double> pcie_generation, pcie_width, pcie_tx_bytes_s, pcie_rx_bytes_s;
  std::optional<double> ecc_uncorrected;
  std::optional<double> xid;  // the code of a critical error that came since the last reading
};

/// One column of a GpuReading: how series, Prometheus metrics and CSV are named.
struct GpuColumn {
  std::string_view series;  // "gpu.utilisation"
  std::string_view unit;
  std::optional<double> GpuReading::*value;
};
const std::vector<GpuColumn>& gpu_columns();

/// Reads all devices of one make. One thread at a time.
class GpuReader {
 public:
  struct Subject {
    std::string name;  // "gpu0", or "gpu0/mig1" for a slice of it
    GpuReading reading;
    unsigned device = 0;
    bool slice = false;
  };

  virtual ~GpuReader() = default;
  virtual std::vector<GpuFacts> facts() = 0;
  /// Every device. Without `slow` only what changes fast: utilisation, activity, power, memory. With it everything, and
  /// the caller may wait for 20 ms a device.
  virtual std::vector<Subject> read(std::int64_t t_ns, bool slow) = 0;
  /// Processes that compute on a device; nothing where that is not known.
  virtual std::optional<std::vector<GpuProcess>> processes(unsigned device) = 0;
};

std::unique_ptr<GpuReader> nvml_reader(std::unique_ptr<Nvml> nvml);
/// AMD's by sysfs; null when there is none. Indices start at `first_index`.
std::unique_ptr<GpuReader> amd_reader(unsigned first_index = 0, const std::filesystem::path& root = host_root());

/// All devices that can be read, and whether that is known at all.
struct GpuInventory {
  std::vector<std::unique_ptr<GpuReader>> readers;
  /// False when there is a driver that does not answer: then nobody knows how many devices there are.
  bool known = true;
  NvmlFailure nvml_failure = NvmlFailure::kNone;
  std::string problem;  // why NVML cannot be used; also set when it is just not installed
  std::optional<std::string> driver_version;
  std::optional<std::string> cuda_version;
};
GpuInventory find_gpus(const std::filesystem::path& root = host_root());

/// NUMA node and neighbouring CPUs of a PCI device, where sysfs says.
void add_locality(GpuFacts& facts, const std::filesystem::path& root = host_root());

/// Empty where NVML counts none or does not answer.
std::vector<GpuFacts> read_gpu_facts(Nvml& nvml);

/// The columns above as series; the subject is that of the reader. With the root of the watched tree also what
/// it has itself (gpu.own_memory, bytes) and processes of others take: gpu.foreign_memory (bytes) and, where the driver
/// says, gpu.foreign_share (0..1).
std::unique_ptr<Source> gpu_source(std::unique_ptr<GpuReader> reader, std::optional<std::int64_t> root_pid = {});
std::unique_ptr<Source> gpu_source(std::unique_ptr<Nvml> nvml);

/// A variable by which a program is shown some of the GPUs only.
bool shows_some_gpus(std::string_view variable);
/// Such a value shows none: it is empty, or what comes first is no device (-1, or Slurm's NoDevFiles).
bool hides_every_gpu(std::string_view value);

/// What throttle_reasons mean, in words, the harmless ones (idle, chosen clocks) left out.
std::vector<std::string_view> throttle_names(std::uint64_t reasons);

}  // namespace unidle::telemetry
