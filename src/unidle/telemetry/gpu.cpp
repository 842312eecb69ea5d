#include "unidle/telemetry/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/telemetry/process_use.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

/// Slow-changing values are read once a second: every driver call costs CPU time, and the one for PCIe traffic blocks
/// its caller.
constexpr std::int64_t kSlowInterval_ns = kNsPerSecond;

class NvmlReader final : public GpuReader {
 public:
  explicit NvmlReader(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

  std::vector<GpuFacts> facts() override { return read_gpu_facts(*nvml_); }

  std::vector<Subject> read(std::int64_t t_ns, bool slow) override {
    std::vector<Subject> subjects;
    if (slow || !count_) {
      count_ = nvml_->count().value;
    }
    const std::vector<Xid> xids = slow ? nvml_->xids() : std::vector<Xid>();
    for (unsigned gpu = 0; gpu < count_.value_or(0); ++gpu) {
      Subject& subject = subjects.emplace_back(Subject{fmt::format("gpu{}", gpu), {}, gpu, false});
      read_device(gpu, t_ns, subject.reading);
      if (slow || !refreshed_.contains(gpu)) {
        refresh(gpu);
      }
      read_slow(gpu, slow, subject.reading);
      for (const Xid& xid : xids) {
        if (xid.device == gpu) {
          subject.reading.xid = static_cast<double>(xid.code);
        }
      }
      read_slices(gpu, t_ns, subjects);
    }
    return subjects;
  }

  std::optional<std::vector<GpuProcess>> processes(unsigned device) override {
    return nvml_->compute_processes(device).value;
  }

 private:
  /// The last readings of slow-changing values.
  struct Slow {
    std::optional<double> power_limit_w;
    Pcie pcie;
    std::optional<double> ecc_uncorrected;
    std::vector<MigDevice> slices;
  };

  void read_device(unsigned gpu, std::int64_t t_ns, GpuReading& reading) {
    reading.utilisation = nvml_->utilisation_since(gpu).value;
    if (!reading.utilisation) {
      reading.utilisation = nvml_->utilisation(gpu).value;
    }
    if (const auto memory = nvml_->memory(gpu)) {
      reading.memory_bytes = static_cast<double>((*memory).used_bytes);
    }
    if (const auto power = nvml_->power(gpu)) {
      reading.power_w = (*power).w;
      reading.power_instant_w = (*power).instant_w;
    }
    const GpmActivity activity = nvml_->gpm(gpu, t_ns);
    put_activity(activity, reading);
    if (activity.sm) {
      counts_traffic_[gpu] = activity.pcie_rx_bytes_s.has_value();
    }
  }

  static void put_activity(const GpmActivity& activity, GpuReading& reading) {
    reading.sm_activity = activity.sm;
    reading.sm_occupancy = activity.occupancy;
    reading.tensor_activity = activity.tensor;
    reading.dram_activity = activity.dram;
    reading.pcie_tx_bytes_s = activity.pcie_tx_bytes_s;
    reading.pcie_rx_bytes_s = activity.pcie_rx_bytes_s;
  }

  void refresh(unsigned gpu) {
    Slow& slow = refreshed_[gpu];
    slow.power_limit_w = nvml_->power_limit_w(gpu).value;
    slow.pcie = nvml_->pcie(gpu);
    const auto errors = nvml_->ecc_uncorrected(gpu).value;
    slow.ecc_uncorrected = errors ? std::optional(static_cast<double>(*errors)) : std::nullopt;
    slow.slices = nvml_->mig_on(gpu).value.value_or(false) ? nvml_->mig_devices(gpu) : std::vector<MigDevice>();
  }

  void read_slow(unsigned gpu, bool slow, GpuReading& reading) {
    const Slow& known = refreshed_[gpu];
    reading.power_limit_w = known.power_limit_w;
    if (!slow) {
      return;
    }
    reading.energy_j = nvml_->energy_j(gpu).value;
    reading.temperature_c = nvml_->temperature_c(gpu).value;
    reading.sm_clock_mhz = nvml_->sm_clock_mhz(gpu).value;
    reading.memory_clock_mhz = nvml_->memory_clock_mhz(gpu).value;
    if (const auto reasons = nvml_->throttle_reasons(gpu)) {
      reading.throttle_reasons = static_cast<double>(*reasons);
    }
    reading.ecc_uncorrected = known.ecc_uncorrected;
    reading.pcie_generation = known.pcie.generation;
    reading.pcie_width = known.pcie.width;
    const auto counted = counts_traffic_.find(gpu);
    if (counted == counts_traffic_.end() ? !nvml_->gpm_usable(gpu) : !counted->second) {
      // One direction of one device per reading: with many devices the total wait would be too long.
      const bool to_device = traffic_turn_++ % 2 == 0;
      (to_device ? reading.pcie_rx_bytes_s : reading.pcie_tx_bytes_s) = nvml_->pcie_bytes_s(gpu, to_device).value;
    }
  }

  void read_slices(unsigned gpu, std::int64_t t_ns, std::vector<Subject>& subjects) {
    for (const MigDevice& slice : refreshed_[gpu].slices) {
      GpuReading reading;
      if (slice.memory) {
        reading.memory_bytes = static_cast<double>(slice.memory->used_bytes);
      }
      if (slice.gpu_instance) {
        put_activity(nvml_->gpm_mig(gpu, *slice.gpu_instance, t_ns), reading);
      }
      subjects.push_back({fmt::format("gpu{}/mig{}", gpu, slice.index), reading, gpu, true});
    }
  }

  std::unique_ptr<Nvml> nvml_;
  std::optional<unsigned> count_;
  std::map<unsigned, Slow> refreshed_;
  /// Whether GPM counts link traffic, once it has answered. GPM's averages and the driver's 20 ms measurements must not
  /// be mixed in one series.
  std::map<unsigned, bool> counts_traffic_;
  unsigned traffic_turn_ = 0;
};

class GpuSource final : public Source {
 public:
  GpuSource(std::unique_ptr<GpuReader> reader, std::optional<std::int64_t> root_pid)
      : reader_(std::move(reader)), root_pid_(root_pid) {}

  std::string_view name() const override { return "gpu"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    const bool slow = t_ns >= next_slow_ns_;
    if (slow) {
      next_slow_ns_ = t_ns + kSlowInterval_ns;
    }
    for (const GpuReader::Subject& subject : reader_->read(t_ns, slow)) {
      for (const GpuColumn& column : gpu_columns()) {
        if (const auto& value = subject.reading.*column.value) {
          sink({column.series, column.unit, subject.name, t_ns, *value});
        }
      }
      if (slow && root_pid_ && !subject.slice) {
        read_foreign(subject, t_ns, sink);
      }
    }
  }

 private:
  void read_foreign(const GpuReader::Subject& subject, std::int64_t t_ns, const Sink& sink) {
    const auto all = reader_->processes(subject.device);
    const auto foreign = all ? foreign_processes(*all, process_tree(*root_pid_)) : std::nullopt;
    if (!foreign) {
      return;
    }
    const auto held = [](double sum, const GpuProcess& process) {
      return sum + static_cast<double>(process.used_bytes.value_or(0));
    };
    const double bytes = std::accumulate(foreign->begin(), foreign->end(), 0.0, held);
    std::optional<double> share = 0;
    for (const GpuProcess& process : *foreign) {
      share = share && process.share ? std::optional(*share + *process.share) : std::nullopt;
    }
    sink({"gpu.foreign_memory", "bytes", subject.name, t_ns, bytes});
    sink({"gpu.own_memory", "bytes", subject.name, t_ns, std::accumulate(all->begin(), all->end(), 0.0, held) - bytes});
    if (share) {
      sink({"gpu.foreign_share", "share", subject.name, t_ns, *share});
    }
  }

  std::unique_ptr<GpuReader> reader_;
  std::optional<std::int64_t> root_pid_;
  std::int64_t next_slow_ns_ = 0;
};

}  // namespace

const std::vector<GpuColumn>& gpu_columns() {
  static const std::vector<GpuColumn> kColumns = {
      {"gpu.utilisation", "share", &GpuReading::utilisation},
      {"gpu.memory", "bytes", &GpuReading::memory_bytes},
      {"gpu.power", "W", &GpuReading::power_w},
      {"gpu.power_instant", "W", &GpuReading::power_instant_w},
      {"gpu.power_limit", "W", &GpuReading::power_limit_w},
      {"gpu.energy", "J", &GpuReading::energy_j},
      {"gpu.temperature", "C", &GpuReading::temperature_c},
      {"gpu.sm_clock", "MHz", &GpuReading::sm_clock_mhz},
      {"gpu.memory_clock", "MHz", &GpuReading::memory_clock_mhz},
      {"gpu.throttle_reasons", "bits", &GpuReading::throttle_reasons},
      {"gpu.sm_activity", "share", &GpuReading::sm_activity},
      {"gpu.sm_occupancy", "share", &GpuReading::sm_occupancy},
      {"gpu.tensor_activity", "share", &GpuReading::tensor_activity},
      {"gpu.dram_activity", "share", &GpuReading::dram_activity},
      {"gpu.pcie_generation", "generation", &GpuReading::pcie_generation},
      {"gpu.pcie_width", "lanes", &GpuReading::pcie_width},
      {"gpu.pcie_tx", "bytes/s", &GpuReading::pcie_tx_bytes_s},
      {"gpu.pcie_rx", "bytes/s", &GpuReading::pcie_rx_bytes_s},
      {"gpu.ecc_uncorrected", "errors", &GpuReading::ecc_uncorrected},
      {"gpu.xid", "code", &GpuReading::xid},
  };
  return kColumns;
}

void add_locality(GpuFacts& facts, const fs::path& root) {
  if (!facts.pci_bus_id) {
    return;
  }
  const fs::path device = root / "sys/bus/pci/devices" / *facts.pci_bus_id;
  const std::string node = try_read_file(device / "numa_node").value_or("");
  int value = 0;
  if (std::from_chars(node.data(), node.data() + node.size(), value).ec == std::errc() && value >= 0) {
    facts.numa_node = value;  // -1: unknown
  }
  if (const auto cpus = try_read_file(device / "local_cpulist"); cpus && !trimmed(*cpus).empty()) {
    facts.local_cpus = std::string(trimmed(*cpus));
  }
}

std::vector<GpuFacts> read_gpu_facts(Nvml& nvml) {
  std::vector<GpuFacts> facts;
  const unsigned count = nvml.count().value.value_or(0);
  for (unsigned gpu = 0; gpu < count; ++gpu) {
    const auto memory = nvml.memory(gpu).value;
    GpuFacts& entry = facts.emplace_back();
    entry.index = gpu;
    entry.hidden = nvml.hidden(gpu);
    entry.name = nvml.name(gpu).value.value_or("unknown");
    entry.memory_bytes = memory ? std::optional(memory->total_bytes) : std::nullopt;
    entry.capability = nvml.capability(gpu).value;
    entry.uuid = nvml.uuid(gpu).value;
    entry.pci_bus_id = nvml.pci_bus_id(gpu).value;
    entry.power_limit_w = nvml.power_limit_w(gpu).value;
    entry.power_default_limit_w = nvml.power_default_limit_w(gpu).value;
    entry.sm_clock_max_mhz = nvml.sm_clock_max_mhz(gpu).value;
    entry.pcie = nvml.pcie(gpu);
    if (nvml.mig_on(gpu).value.value_or(false)) {
      entry.mig = nvml.mig_devices(gpu);
    }
    add_locality(entry);
  }
  return facts;
}

GpuInventory find_gpus(const fs::path& root) {
  GpuInventory found;
  unsigned next_index = 0;
  if (auto nvml = Nvml::load(found.problem, &found.nvml_failure)) {
    found.driver_version = nvml->driver_version().value;
    found.cuda_version = nvml->cuda_version().value;
    if (const auto count = nvml->count()) {
      next_index = *count;
      found.readers.push_back(nvml_reader(std::move(nvml)));
    } else {
      found.nvml_failure = NvmlFailure::kUnusable;
      found.problem = count.reason;
    }
  }
  found.known = found.nvml_failure != NvmlFailure::kUnusable;
  if (auto amd = amd_reader(next_index, root)) {
    found.readers.push_back(std::move(amd));
  }
  return found;
}

std::unique_ptr<GpuReader> nvml_reader(std::unique_ptr<Nvml> nvml) {
  return std::make_unique<NvmlReader>(std::move(nvml));
}

std::unique_ptr<Source> gpu_source(std::unique_ptr<GpuReader> reader, std::optional<std::int64_t> root_pid) {
  return std::make_unique<GpuSource>(std::move(reader), root_pid);
}

std::unique_ptr<Source> gpu_source(std::unique_ptr<Nvml> nvml) { return gpu_source(nvml_reader(std::move(nvml))); }

bool shows_some_gpus(std::string_view variable) {
  return variable == "CUDA_VISIBLE_DEVICES" || variable == "HIP_VISIBLE_DEVICES" || variable == "ROCR_VISIBLE_DEVICES";
}

bool hides_every_gpu(std::string_view value) {
  std::string_view first = value.substr(0, value.find(','));
  first.remove_prefix(std::min(first.find_first_not_of(' '), first.size()));
  const bool number = !first.empty() && first[0] >= '0' && first[0] <= '9';
  return !number && !first.starts_with("GPU-") && !first.starts_with("MIG-");
}

std::vector<std::string_view> throttle_names(std::uint64_t reasons) {
  constexpr std::pair<std::uint64_t, std::string_view> kNames[] = {
      {nvml::kReasonPowerCap, "power limit"},
      {nvml::kReasonHardwareSlowdown, "hardware slowdown"},
      {nvml::kReasonSoftwareThermal, "temperature (driver)"},
      {nvml::kReasonHardwareThermal, "temperature (hardware)"},
      {nvml::kReasonPowerBrake, "external power brake"},
      {nvml::kReasonSyncBoost, "sync boost group"},
  };
  std::vector<std::string_view> names;
  for (const auto& [bit, text] : kNames) {
    if ((reasons & bit) != 0) {
      names.push_back(text);
    }
  }
  return names;
}

}  // namespace unidle::telemetry
