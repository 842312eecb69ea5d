#include "unidle/telemetry/sampler.h"

#include <unistd.h>

#include <optional>
#include <sstream>
#include <utility>

#include "unidle/base/files.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::telemetry {

Sampler::Sampler(Clock& clock, std::int64_t interval_ns, std::vector<std::unique_ptr<Source>> sources, Sink sink)
    : clock_(clock),
      interval_ns_(interval_ns),
      sources_(std::move(sources)),
      sink_(std::move(sink)),
      thread_([this](std::stop_token stop) { loop(std::move(stop)); }) {}

Sampler::~Sampler() = default;

void Sampler::loop(std::stop_token stop) {
  std::int64_t next = clock_.now_ns();
  do {
    read_all();
    next += interval_ns_;
    const std::int64_t now = clock_.now_ns();
    if (next < now) {
      next = now + interval_ns_;  // after a stall: no burst to catch up
    }
  } while (clock_.sleep_until(next, stop));
}

void Sampler::read_all() {
  for (const std::unique_ptr<Source>& source : sources_) {
    try {
      source->read(clock_.now_ns(), sink_);
    } catch (const std::exception&) {
      ++failures_;
    }
  }
}

namespace {

/// The rate of a counter that only grows.
class Rate {
 public:
  /// Nothing at the first value.
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

class ProcessTreeSource final : public Source {
 public:
  explicit ProcessTreeSource(std::int64_t root_pid) : reader_(root_pid) {}

  std::string_view name() const override { return "process tree"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    // Looking for new processes and asking for proportional memory cost the kernel real work: rarely.
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
  }

 private:
  static bool due(std::int64_t t_ns, std::int64_t& next_ns, std::int64_t period_ns) {
    const bool now = t_ns >= next_ns;
    if (now) {
      next_ns = t_ns + period_ns;
    }
    return now;
  }

  ProcessTreeReader reader_;
  Rate cpu_;
  Rate read_;
  std::int64_t next_discovery_ns_ = 0;
  std::int64_t next_memory_ns_ = 0;
};

class HostSource final : public Source {
 public:
  std::string_view name() const override { return "host"; }

  void read(std::int64_t t_ns, const Sink& sink) override {
    // "cpu  user nice system idle iowait irq softirq steal ..."
    std::istringstream line(read_file(host_root() / "proc/stat"));
    std::string label;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0;
    if (line >> label >> user >> nice >> system >> idle >> wait >> irq >> softirq && label == "cpu") {
      const double busy_s = (user + nice + system + irq + softirq) / static_cast<double>(::sysconf(_SC_CLK_TCK));
      if (const auto cores = cpu_.per_second(t_ns, busy_s)) {
        sink({"host.cpu", "cores", "", t_ns, *cores});
      }
    }
  }

 private:
  Rate cpu_;
};

}  // namespace

std::unique_ptr<Source> process_tree_source(std::int64_t root_pid) {
  return std::make_unique<ProcessTreeSource>(root_pid);
}

std::unique_ptr<Source> host_source() { return std::make_unique<HostSource>(); }

}  // namespace unidle::telemetry
