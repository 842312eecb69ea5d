// The state of devices, host, processes and run at one moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/account/rate.h"
#include "unidle/telemetry/gpu.h"
#include "unidle/telemetry/process_use.h"

namespace unidle::monitor {

struct GpuNow {
  std::string subject;  // "gpu0", "gpu0/mig1"
  std::string name;
  std::string uuid;  // empty when unknown
  std::optional<double> memory_total_bytes;
  telemetry::GpuReading reading;
  std::uint64_t xids = 0;  // critical errors since the monitor started
  std::vector<telemetry::GpuProcess> processes;
  bool mig = false;  // a slice, or a device that is split into slices

  /// Why utilisation is unknown; empty when it is known. In MIG mode NVML reports utilisation neither for the device
  /// nor for a slice (NVML's documentation, nvmlDeviceGetUtilizationRates).
  std::string_view why_busy_unknown() const;
};

struct ProcessNow {
  std::int64_t pid = 0;
  std::string name;
  telemetry::Role role = telemetry::Role::kTrainer;
  char state = '?';
  std::optional<double> cpu;        // cores in use
  std::optional<double> run_delay;  // cores' worth of waiting for a CPU
  std::uint64_t rss_bytes = 0;
  int threads = 0;
};

/// An active run: its record is being written.
struct RunNow {
  std::filesystem::path folder;
  std::int64_t pid = 0;
  std::optional<std::int64_t> step;
  /// Over the last ten seconds: steps of the reference process, samples of all processes.
  std::optional<double> steps_per_s, samples_per_s;
  std::optional<double> input_share;              // share of step time spent waiting for input
  std::vector<account::RecentProcess> processes;  // that train, of a run with several
  std::optional<double> loss;
};

struct Snapshot {
  std::int64_t t_ns = 0;
  std::int64_t wall_ns = 0;
  double cpus_online = 1;
  double cpus_allowed = 1;
  std::map<std::string, double> host;  // the series of telemetry::host_source()
  bool gpus_known = true;
  std::vector<GpuNow> gpus;
  std::optional<std::int64_t> pid;  // root of the watched tree
  std::optional<double> tree_cpu;   // cores in use
  std::vector<ProcessNow> processes;
  std::optional<RunNow> run;

  /// The CPU as a device: cores the watched tree uses divided by those it may use, otherwise the machine's share.
  std::optional<double> cpu_share() const;
  std::optional<double> cpu_used() const;
};

}  // namespace unidle::monitor
