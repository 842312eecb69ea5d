// Takes snapshots: reads devices at every call, the host every second, and the record of a run every two seconds.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/monitor/devices.h"
#include "unidle/monitor/snapshot.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::monitor {

struct CollectorOptions {
  std::optional<std::int64_t> pid;              // root of the tree to watch; by default that of the active run, if any
  std::optional<std::filesystem::path> record;  // the run to follow; by default the newest active one
};

/// Not thread-safe. Reading never throws: what cannot be read is absent.
class Collector {
 public:
  /// `clock` must outlive it. Throws kInput (subject: the pid) when the given process does not exist.
  Collector(Clock& clock, CollectorOptions options);

  /// True when the devices are found or their driver does not answer; take() then waits at most a second for it.
  bool devices_ready() { return devices_.looked(); }
  Snapshot take();
  /// For example "the driver does not answer (nvmlInit_v2, 5 s)"; empty while the driver answers.
  std::optional<std::string> driver_problem() const { return devices_.problem(); }
  /// True when the requested process has ended.
  bool ended() const { return ended_; }

 private:
  struct Recent {
    telemetry::GpuReading reading;
    std::map<std::string_view, std::int64_t> seen_ns;
    std::uint64_t xids = 0;
  };
  struct Counters {
    std::uint64_t start_ticks = 0;
    double cpu_s = 0;
    std::optional<double> run_delay_s;
  };

  void read_gpus(std::int64_t t_ns, bool slow);
  void remember(const telemetry::GpuReader::Subject& subject, std::int64_t t_ns, GpuNow& gpu);
  void read_host(std::int64_t t_ns);
  void read_tree(std::int64_t t_ns);
  void read_run(std::int64_t t_ns);
  void watch(std::optional<std::int64_t> pid);

  Clock& clock_;
  CollectorOptions options_;
  Devices devices_;
  std::map<std::string, Recent> recent_;
  std::unique_ptr<telemetry::Source> host_;
  std::optional<telemetry::ProcessUseReader> tree_;
  std::map<std::int64_t, Counters> counters_;
  std::int64_t last_tree_ns_ = 0;
  std::int64_t next_slow_ns_ = 0;
  std::int64_t next_run_ns_ = 0;
  bool ended_ = false;
  Snapshot now_;
};

/// Returns the newest record if its run is active. Rates are over its last ten seconds.
std::optional<RunNow> read_run_under_way();
/// The same for one record.
std::optional<RunNow> read_run(const std::filesystem::path& folder);

}  // namespace unidle::monitor
