// The host's readings as sampler sources.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "unidle/base/files.h"
#include "unidle/telemetry/host_state.h"
#include "unidle/telemetry/process_tree.h"
#include "unidle/telemetry/process_use.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::telemetry {

namespace {

/// The rate of a monotonic counter.
class Rate {
 public:
  /// Returns nothing for the first value.
  std::optional<double> per_second(std::int64_t t_ns, double total) {
    std::optional<double> rate;
    if (last_t_ns_ && t_ns > *last_t_ns_) {
      rate = (total - last_total_) / seconds(t_ns - *last_t_ns_);
    }
    last_t_ns_ = t_ns;
    last_total_ = total;
    return rate;
  }

 private:
  std::optional<std::int64_t> last_t_ns_;
  double last_total_ = 0;
};

bool due(std::int64_t t_ns, std::int64_t& next_ns, std::int64_t period_ns) {
  const bool now = t_ns >= next_ns;
  if (now) {
    next_ns = t_ns + period_ns;
  }
  return now;
}

class ProcessTreeSource final : public Source {
 public:
  explicit ProcessTreeSource(std::int64_t root_pid) : reader_(root_pid), processes_(root_pid) {}

  std::string_view name() const override { return "process tree"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    // Finding new processes and computing proportional memory are expensive for the kernel, so they happen rarely.
    const bool rediscover = due(t_ns, next_discovery_ns_, kNsPerSecond);
    const bool proportional = due(t_ns, next_memory_ns_, 5 * kNsPerSecond);
    const TreeUsage usage = reader_.read(rediscover, proportional);
    if (usage.processes == 0) {
      return;
    }
    if (const auto cores = cpu_.per_second(t_ns, usage.cpu_s)) {
      sink({"tree.cpu", "cores", "", t_ns, *cores});
    }
    if (proportional) {
      sink({"tree.memory", "bytes", "", t_ns, static_cast<double>(usage.pss_bytes.value_or(usage.rss_bytes))});
    }
    if (usage.read_bytes) {
      if (const auto rate = read_.per_second(t_ns, static_cast<double>(*usage.read_bytes))) {
        sink({"tree.read", "bytes/s", "", t_ns, *rate});
      }
    }
    if (rediscover) {
      sink({"tree.processes", "processes", "", t_ns, static_cast<double>(usage.processes)});
      sink({"tree.threads", "threads", "", t_ns, static_cast<double>(usage.threads)});
    }
    sink({"tree.disk_wait", "processes", "", t_ns, static_cast<double>(usage.in_disk_wait)});
    if (rediscover) {
      read_roles(t_ns, sink);
    }
  }

 private:
  /// Increments of a per-process counter since the last call, summed by role; new processes count in full.
  struct RoleSums {
    double cpu_s = 0;
    std::optional<double> run_delay_s;
    int processes = 0;
  };
  struct Counters {
    double cpu_s = 0;
    double run_delay_s = 0;
    double io_delay_s = 0;
    std::uint64_t major_faults = 0;
  };

  void read_roles(std::int64_t t_ns, const Sink& sink) {
    std::map<Role, RoleSums> sums;
    std::map<std::int64_t, Counters> counters;
    double io_delay_s = 0;
    double faults = 0;
    for (const ProcessUse& process : processes_.read()) {
      RoleSums& sum = sums[process.role];
      const Counters& last = counters_[process.stat.pid];
      const Counters now = {process.stat.cpu_s, process.run_delay_s.value_or(last.run_delay_s), process.stat.io_delay_s,
                            process.stat.major_faults};
      sum.processes += 1;
      sum.cpu_s += std::max(0.0, now.cpu_s - last.cpu_s);
      if (process.run_delay_s) {
        sum.run_delay_s = sum.run_delay_s.value_or(0) + std::max(0.0, now.run_delay_s - last.run_delay_s);
      }
      io_delay_s += std::max(0.0, now.io_delay_s - last.io_delay_s);
      faults += now.major_faults >= last.major_faults ? static_cast<double>(now.major_faults - last.major_faults) : 0;
      counters[process.stat.pid] = now;
    }
    counters_.swap(counters);
    const std::int64_t since_ns = std::exchange(last_roles_ns_, t_ns);
    if (since_ns == 0 || t_ns <= since_ns) {
      return;  // what happened before the first reading is not a rate
    }
    const double passed_s = seconds(t_ns - since_ns);
    std::optional<double> run_delay_s;
    for (const auto& [role, sum] : sums) {
      const std::string subject(to_string(role));
      sink({"role.cpu", "cores", subject, t_ns, sum.cpu_s / passed_s});
      sink({"role.processes", "processes", subject, t_ns, static_cast<double>(sum.processes)});
      if (sum.run_delay_s) {
        sink({"role.run_delay", "cores", subject, t_ns, *sum.run_delay_s / passed_s});
        run_delay_s = run_delay_s.value_or(0) + *sum.run_delay_s;
      }
    }
    if (run_delay_s) {
      sink({"tree.run_delay", "cores", "", t_ns, *run_delay_s / passed_s});
    }
    if (delays_accounted_) {
      sink({"tree.io_delay", "cores", "", t_ns, io_delay_s / passed_s});
    }
    sink({"tree.major_faults", "1/s", "", t_ns, faults / passed_s});
  }

  ProcessTreeReader reader_;
  ProcessUseReader processes_;
  std::map<std::int64_t, Counters> counters_;
  std::int64_t last_roles_ns_ = 0;
  // Linux 5.14 and later disable this accounting by default; a zero would be wrong then.
  bool delays_accounted_ = try_read_file(host_root() / "proc/sys/kernel/task_delayacct").value_or("").starts_with("1");
  Rate cpu_;
  Rate read_;
  std::int64_t next_discovery_ns_ = 0;
  std::int64_t next_memory_ns_ = 0;
};

class HostSource final : public Source {
 public:
  std::string_view name() const override { return "host"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    if (due(t_ns, next_slow_ns_, kNsPerSecond)) {
      read_pressures(t_ns, sink);
      read_limits(t_ns, sink);
    }
    // "cpu  user nice system idle iowait irq softirq steal ..."
    std::istringstream line(read_file(host_root() / "proc/stat"));
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0;
    if (line >> label >> user >> nice >> system >> idle >> wait >> irq >> softirq && label == "cpu") {
      const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
      if (const auto cores = cpu_.per_second(t_ns, (user + nice + system + irq + softirq) / ticks)) {
        sink({"host.cpu", "cores", "", t_ns, *cores});
      }
      if (const auto cores = wait_.per_second(t_ns, wait / ticks)) {
        sink({"host.iowait", "cores", "", t_ns, *cores});
      }
    }
  }

 private:
  void read_pressures(std::int64_t t_ns, const Sink& sink) {
    struct Wanted {
      const char* resource;
      std::string_view series;
      Rate& rate;
    };
    for (const Wanted& wanted :
         {Wanted{"cpu", "host.cpu_pressure", cpu_pressure_}, Wanted{"io", "host.io_pressure", io_pressure_},
          Wanted{"memory", "host.memory_pressure", memory_pressure_}}) {
      const auto pressure = read_pressure(wanted.resource);
      const auto share = pressure ? wanted.rate.per_second(t_ns, pressure->some_s) : std::nullopt;
      if (share) {
        sink({wanted.series, "share", "", t_ns, *share});
      }
    }
  }

  void read_limits(std::int64_t t_ns, const Sink& sink) {
    const CgroupUse use = read_cgroup_use();
    if (use.throttled_s) {
      if (const auto cores = throttled_.per_second(t_ns, *use.throttled_s)) {
        sink({"cgroup.throttled", "cores", "", t_ns, *cores});
      }
    }
    if (use.memory_bytes) {
      sink({"cgroup.memory", "bytes", "", t_ns, static_cast<double>(*use.memory_bytes)});
    }
    const MemoryState memory = read_memory_state();
    if (memory.available_bytes) {
      sink({"host.memory_available", "bytes", "", t_ns, static_cast<double>(*memory.available_bytes)});
    }
    if (memory.shm_bytes && memory.shm_free_bytes) {
      sink({"host.shm", "bytes", "", t_ns, static_cast<double>(*memory.shm_bytes - *memory.shm_free_bytes)});
    }
  }

  Rate cpu_, wait_, cpu_pressure_, io_pressure_, memory_pressure_, throttled_;
  std::int64_t next_slow_ns_ = 0;
};

}  // namespace

std::unique_ptr<Source> process_tree_source(std::int64_t root_pid) {
  return std::make_unique<ProcessTreeSource>(root_pid);
}

std::unique_ptr<Source> host_source() { return std::make_unique<HostSource>(); }

}  // namespace unidle::telemetry
