#include "unidle/monitor/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/telemetry/host.h"

namespace unidle::monitor {

namespace {

constexpr std::int64_t kRunInterval_ns = 2 * kNsPerSecond;
/// The host is read once a second and GPM at most ten times a second, so a younger value is still current.
constexpr std::int64_t kFresh_ns = 3 * kNsPerSecond;

/// A MIG slice has its own name, UUID and memory.
void name_slice(const telemetry::GpuFacts& device, GpuNow& gpu) {
  gpu.memory_total_bytes.reset();
  for (const telemetry::MigDevice& slice : device.mig) {
    if (gpu.subject == fmt::format("gpu{}/mig{}", device.index, slice.index)) {
      gpu.name = slice.name;
      gpu.uuid = slice.uuid;
      gpu.memory_total_bytes =
          slice.memory ? std::optional(static_cast<double>(slice.memory->total_bytes)) : std::nullopt;
    }
  }
}

}  // namespace

std::string_view GpuNow::why_busy_unknown() const {
  if (reading.utilisation || reading.sm_activity || !reading.memory_bytes) {
    return {};  // without a memory reading the device does not answer at all
  }
  return mig ? "busy: not known, NVML has no utilisation in MIG mode" : "busy: not known, the device does not tell";
}

std::optional<double> Snapshot::cpu_used() const {
  if (pid) {
    return tree_cpu;
  }
  const auto used = host.find("host.cpu");
  return used != host.end() ? std::optional(used->second) : std::nullopt;
}

std::optional<double> Snapshot::cpu_share() const {
  const auto used = cpu_used();
  const double all = pid ? cpus_allowed : cpus_online;
  return used && all > 0 ? std::optional(std::min(*used / all, 1.0)) : std::nullopt;
}

Collector::Collector(Clock& clock, CollectorOptions options)
    : clock_(clock), options_(std::move(options)), host_(telemetry::host_source()) {
  if (options_.pid && !telemetry::read_process_stat(*options_.pid)) {
    throw Error(ErrorCode::kInput, fmt::format("--pid {}", *options_.pid), "no such process");
  }
  const telemetry::HostFacts host = telemetry::read_host_facts();
  now_.cpus_online = host.cpus_online;
  now_.cpus_allowed = host.cpus_allowed();
  watch(options_.pid);
}

void Collector::watch(std::optional<std::int64_t> pid) {
  if (now_.pid == pid && tree_.has_value() == pid.has_value()) {
    return;
  }
  now_.pid = pid;
  now_.tree_cpu.reset();
  now_.processes.clear();
  counters_.clear();
  last_tree_ns_ = 0;
  tree_.reset();
  if (pid) {
    tree_.emplace(*pid);
  }
}

Snapshot Collector::take() {
  const std::int64_t t_ns = clock_.now_ns();
  now_.t_ns = t_ns;
  now_.wall_ns = clock_.wall_ns();
  const bool slow = t_ns >= next_slow_ns_;
  read_gpus(t_ns, slow);
  if (slow) {
    next_slow_ns_ = t_ns + kNsPerSecond;
    if (t_ns >= next_run_ns_) {
      next_run_ns_ = t_ns + kRunInterval_ns;
      read_run(t_ns);
    }
    read_host(t_ns);
    read_tree(t_ns);
  }
  return now_;
}

void Collector::remember(const telemetry::GpuReader::Subject& subject, std::int64_t t_ns, GpuNow& gpu) {
  Recent& recent = recent_[subject.name];
  for (const telemetry::GpuColumn& column : telemetry::gpu_columns()) {
    std::int64_t& seen_ns = recent.seen_ns[column.series];
    if (subject.reading.*column.value) {
      recent.reading.*column.value = subject.reading.*column.value;
      seen_ns = t_ns;
    } else if (t_ns - seen_ns > kFresh_ns) {
      (recent.reading.*column.value).reset();
    }
  }
  recent.reading.xid = subject.reading.xid;
  recent.xids += subject.reading.xid ? 1 : 0;
  gpu.reading = recent.reading;
  gpu.xids = recent.xids;
}

void Collector::read_gpus(std::int64_t t_ns, bool slow) {
  const auto devices = devices_.read(t_ns, slow);
  now_.gpus_known = devices_.known() && !devices_.problem();
  if (!now_.gpus_known && !devices) {
    now_.gpus.clear();
  }
  if (!devices) {
    for (GpuNow& gpu : now_.gpus) {
      gpu.reading = {};  // the device did not answer
    }
    return;
  }
  std::map<std::string, std::vector<telemetry::GpuProcess>> processes;
  for (GpuNow& gpu : now_.gpus) {
    processes[gpu.subject] = std::move(gpu.processes);
  }
  now_.gpus.clear();
  for (const Devices::Device& device : *devices) {
    GpuNow& gpu = now_.gpus.emplace_back();
    gpu.subject = device.subject.name;
    if (device.facts) {
      gpu.name = device.facts->name;
      gpu.uuid = device.facts->uuid.value_or("");
      gpu.mig = device.subject.slice || !device.facts->mig.empty();
      if (device.facts->memory_bytes) {
        gpu.memory_total_bytes = static_cast<double>(*device.facts->memory_bytes);
      }
      if (device.subject.slice) {
        name_slice(*device.facts, gpu);
      }
    }
    remember(device.subject, t_ns, gpu);
    if (slow && !device.subject.slice) {
      gpu.processes = device.processes;
    } else {
      gpu.processes = std::move(processes[gpu.subject]);
    }
  }
}

void Collector::read_host(std::int64_t t_ns) {
  try {
    std::map<std::string, double> readings;
    host_->read(t_ns, [&](const telemetry::Reading& reading) { readings[std::string(reading.name)] = reading.value; });
    now_.host.swap(readings);
  } catch (const std::exception&) {
    now_.host.clear();  // /proc cannot be read
  }
}

void Collector::read_tree(std::int64_t t_ns) {
  if (!tree_) {
    return;
  }
  const std::vector<telemetry::ProcessUse> processes = tree_->read();
  const std::int64_t since_ns = std::exchange(last_tree_ns_, t_ns);
  const double passed_s = since_ns > 0 ? seconds(t_ns - since_ns) : 0;
  // A process that has ended stays a zombie until its parent waits for it.
  const bool gone = processes.empty() || processes.front().stat.state == 'Z' || processes.front().stat.state == 'X';
  ended_ = options_.pid.has_value() && gone;
  now_.processes.clear();
  now_.tree_cpu = passed_s > 0 ? std::optional(0.0) : std::nullopt;
  std::map<std::int64_t, Counters> counters;
  for (const telemetry::ProcessUse& process : processes) {
    const telemetry::ProcessStat& stat = process.stat;
    ProcessNow& row = now_.processes.emplace_back();
    row = {stat.pid, stat.name, process.role, stat.state, {}, {}, stat.rss_bytes, stat.threads};
    const Counters& last = counters_[stat.pid];
    const bool same = last.start_ticks == stat.start_ticks;
    counters[stat.pid] = {stat.start_ticks, stat.cpu_s, process.run_delay_s};
    if (passed_s > 0) {
      row.cpu = std::max(0.0, stat.cpu_s - (same ? last.cpu_s : 0)) / passed_s;
      *now_.tree_cpu += *row.cpu;
      if (process.run_delay_s && (!same || last.run_delay_s)) {
        row.run_delay = std::max(0.0, *process.run_delay_s - (same ? *last.run_delay_s : 0)) / passed_s;
      }
    }
  }
  counters_.swap(counters);
}

void Collector::read_run(std::int64_t /*t_ns*/) {
  now_.run = options_.record ? monitor::read_run(*options_.record) : read_run_under_way();
  if (options_.pid) {
    // Ignore the run of a process other than the requested one.
    if (now_.run && now_.run->pid != *options_.pid) {
      now_.run.reset();
    }
    return;
  }
  watch(now_.run && now_.run->pid > 0 ? std::optional(now_.run->pid) : std::nullopt);
}

}  // namespace unidle::monitor
