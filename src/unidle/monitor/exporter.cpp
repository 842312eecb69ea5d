#include "unidle/monitor/exporter.h"

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <utility>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/printable.h"
#include "unidle/monitor/listen_address.h"

namespace unidle::monitor {

namespace {

using Label = prometheus::ClientMetric::Label;
using Labels = std::vector<Label>;

struct Name {
  std::string_view series;
  const char* metric;
  const char* help;
  double factor = 1;
  bool counter = false;
};

/// The columns of telemetry::gpu_columns() in base units. gpu.xid is an event and is counted separately.
constexpr Name kGpuNames[] = {
    {"gpu.utilisation", "unidle_gpu_utilisation_ratio", "Share of time in which some kernel ran."},
    {"gpu.memory", "unidle_gpu_memory_used_bytes", "Device memory in use."},
    {"gpu.power", "unidle_gpu_power_watts", "Power drawn, over a second where the device tells."},
    {"gpu.power_instant", "unidle_gpu_power_instant_watts", "Power drawn at this instant."},
    {"gpu.power_limit", "unidle_gpu_power_limit_watts", "Power limit in force."},
    {"gpu.energy", "unidle_gpu_energy_joules_total", "Energy used since the driver was loaded.", 1, true},
    {"gpu.temperature", "unidle_gpu_temperature_celsius", "Temperature of the device."},
    {"gpu.sm_clock", "unidle_gpu_sm_clock_hertz", "Clock of the SMs.", 1e6},
    {"gpu.memory_clock", "unidle_gpu_memory_clock_hertz", "Clock of the memory.", 1e6},
    {"gpu.throttle_reasons", "unidle_gpu_throttle_reasons", "Why the clocks are held down, as NVML's bits."},
    {"gpu.sm_activity", "unidle_gpu_sm_activity_ratio", "Share of the SMs that had work."},
    {"gpu.sm_occupancy", "unidle_gpu_sm_occupancy_ratio", "Share of the warps that were there."},
    {"gpu.tensor_activity", "unidle_gpu_tensor_activity_ratio", "Share of time that matrix units worked."},
    {"gpu.dram_activity", "unidle_gpu_memory_activity_ratio", "Share of the memory bandwidth in use."},
    {"gpu.pcie_generation", "unidle_gpu_pcie_generation", "PCIe generation of the link now."},
    {"gpu.pcie_width", "unidle_gpu_pcie_lanes", "PCIe lanes of the link now."},
    {"gpu.pcie_tx", "unidle_gpu_pcie_transmit_bytes_per_second", "Traffic from the device."},
    {"gpu.pcie_rx", "unidle_gpu_pcie_receive_bytes_per_second", "Traffic to the device."},
    {"gpu.ecc_uncorrected", "unidle_gpu_ecc_uncorrected_errors_total",
     "Uncorrectable memory errors since the driver was loaded.", 1, true},
};

/// Host series that are exported under their own metric names.
constexpr Name kHostNames[] = {
    {"host.cpu", "unidle_host_cpu_used_cores", "CPUs in use on the whole machine."},
    {"host.iowait", "unidle_host_cpu_iowait_cores", "CPUs that idle while storage is waited for."},
    {"host.cpu_pressure", "unidle_host_cpu_pressure_ratio", "Share of time in which some task waited for a CPU."},
    {"host.io_pressure", "unidle_host_io_pressure_ratio", "Share of time in which some task waited for storage."},
    {"host.memory_pressure", "unidle_host_memory_pressure_ratio",
     "Share of time in which some task waited for memory."},
    {"host.memory_available", "unidle_host_memory_available_bytes", "Memory that new programs could have."},
    {"host.shm", "unidle_host_shm_used_bytes", "In use in /dev/shm."},
    {"cgroup.throttled", "unidle_cgroup_throttled_cores", "CPUs' worth of time taken away by the quota."},
    {"cgroup.memory", "unidle_cgroup_memory_bytes", "Memory that the control group uses."},
};

/// Collects metric families, one per name.
class Page {
 public:
  void gauge(const char* name, const char* help, const std::optional<double>& value, const Labels& labels = {}) {
    add(name, help, prometheus::MetricType::Gauge, value, labels);
  }
  void counter(const char* name, const char* help, const std::optional<double>& value, const Labels& labels = {}) {
    add(name, help, prometheus::MetricType::Counter, value, labels);
  }
  std::vector<prometheus::MetricFamily> families;

 private:
  void add(const char* name, const char* help, prometheus::MetricType type, const std::optional<double>& value,
           const Labels& labels) {
    if (!value) {
      return;
    }
    if (families.empty() || families.back().name != name) {
      families.push_back({name, help, type, {}});
    }
    prometheus::ClientMetric& metric = families.back().metric.emplace_back();
    metric.label = labels;
    for (prometheus::ClientMetric::Label& label : metric.label) {
      label.value = printable_line(label.value);  // from a device or a host; a scraper rejects invalid UTF-8
    }
    (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
  }
};

void add_gpus(const Snapshot& snapshot, Page& page) {
  for (const GpuNow& gpu : snapshot.gpus) {
    page.gauge("unidle_gpu_info", "What the device is.", 1,
               {{"gpu", gpu.subject}, {"name", gpu.name}, {"uuid", gpu.uuid}});
  }
  for (const GpuNow& gpu : snapshot.gpus) {
    page.gauge("unidle_gpu_memory_total_bytes", "Device memory.", gpu.memory_total_bytes, {{"gpu", gpu.subject}});
  }
  for (const Name& name : kGpuNames) {
    for (const telemetry::GpuColumn& column : telemetry::gpu_columns()) {
      for (const GpuNow& gpu : snapshot.gpus) {
        auto value = gpu.reading.*column.value;
        if (column.series != name.series || !value) {
          continue;
        }
        *value *= name.factor;
        name.counter ? page.counter(name.metric, name.help, value, {{"gpu", gpu.subject}})
                     : page.gauge(name.metric, name.help, value, {{"gpu", gpu.subject}});
      }
    }
  }
  for (const GpuNow& gpu : snapshot.gpus) {
    if (gpu.subject.find('/') == std::string::npos) {
      page.counter("unidle_gpu_xid_errors_total", "Critical errors since this monitor began.",
                   static_cast<double>(gpu.xids), {{"gpu", gpu.subject}});
    }
  }
  for (const GpuNow& gpu : snapshot.gpus) {
    for (const telemetry::GpuProcess& process : gpu.processes) {
      page.gauge("unidle_gpu_process_memory_bytes", "Device memory by process.",
                 process.used_bytes ? std::optional(static_cast<double>(*process.used_bytes)) : std::nullopt,
                 {{"gpu", gpu.subject}, {"pid", std::to_string(process.pid)}});
    }
  }
}

void add_tree(const Snapshot& snapshot, Page& page) {
  page.gauge("unidle_cpu_allowed_cores", "CPUs that this job may use.", snapshot.cpus_allowed);
  page.gauge("unidle_tree_cpu_used_cores", "CPUs in use by the watched command and its children.", snapshot.tree_cpu);
  std::map<telemetry::Role, std::pair<double, double>> roles;
  for (const ProcessNow& process : snapshot.processes) {
    roles[process.role].first += 1;
    roles[process.role].second += process.cpu.value_or(0);
  }
  for (const auto& [role, sums] : roles) {
    page.gauge("unidle_tree_processes", "Processes of the watched command by role.", sums.first,
               {{"role", std::string(telemetry::to_string(role))}});
  }
  for (const auto& [role, sums] : roles) {
    page.gauge("unidle_tree_role_cpu_used_cores", "CPUs in use by role.", sums.second,
               {{"role", std::string(telemetry::to_string(role))}});
  }
  if (snapshot.run) {
    page.gauge("unidle_run_steps_per_second", "Optimiser steps of the run under way.", snapshot.run->steps_per_s);
    page.gauge("unidle_run_samples_per_second", "Samples of the run under way.", snapshot.run->samples_per_s);
    page.gauge("unidle_run_input_wait_ratio", "Share of the step time that is spent waiting for input.",
               snapshot.run->input_share);
  }
}

std::vector<prometheus::MetricFamily> families_of(const Snapshot& snapshot) {
  Page page;
  add_gpus(snapshot, page);
  for (const Name& name : kHostNames) {
    if (const auto value = snapshot.host.find(std::string(name.series)); value != snapshot.host.end()) {
      page.gauge(name.metric, name.help, value->second);
    }
  }
  add_tree(snapshot, page);
  return std::move(page.families);
}

class Latest final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex_);
    return families_of(snapshot_);
  }
  void set(const Snapshot& snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = snapshot;
  }

 private:
  mutable std::mutex mutex_;
  Snapshot snapshot_;
};

}  // namespace

struct Exporter::Impl {
  std::string host;
  std::shared_ptr<Latest> latest = std::make_shared<Latest>();
  std::unique_ptr<prometheus::Exposer> exposer;
};

Exporter::Exporter(const std::string& address) : impl_(std::make_unique<Impl>()) {
  const std::string whole = listen_address("--listen", address);
  impl_->host = whole.substr(0, whole.rfind(':'));
  try {
    impl_->exposer = std::make_unique<prometheus::Exposer>(whole);
  } catch (const std::exception&) {  // its text names only the web server
    throw Error(ErrorCode::kIo, "--listen " + address, "cannot be listened on",
                "another program may use the port, or the host is not of this machine");
  }
  impl_->exposer->RegisterCollectable(impl_->latest);
}

Exporter::~Exporter() = default;

void Exporter::publish(const Snapshot& snapshot) { impl_->latest->set(snapshot); }

std::string Exporter::url() const {
  const std::vector<int> ports = impl_->exposer->GetListeningPorts();
  return fmt::format("http://{}:{}/metrics", impl_->host, ports.empty() ? 0 : ports[0]);
}

std::string prometheus_text(const Snapshot& snapshot) {
  return prometheus::TextSerializer().Serialize(families_of(snapshot));
}

}  // namespace unidle::monitor
