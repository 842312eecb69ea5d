// What is to be seen at one moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/telemetry/gpu.h"
#include "unidle/telemetry/process_use.h"

namespace unidle::monitor {

struct GpuNow {
  std::string subject;  // "gpu0", "gpu0/mig1"
  std::string name;
  std::string uuid;  // empty when not known
  std::optional<double> memory_total_bytes;
  telemetry::GpuReading reading;
  std::uint64_t xids = 0;  // critical errors since the monitor began
  std::vector<telemetry::GpuProcess> processes;
  bool mig = false;  // a slice, or a device that is cut into slices

  /// Why nobody knows how busy it is; empty where that is known. NVML has no utilisation in MIG mode, neither of the
  /// device nor of a slice. Source: NVML's documentation, nvmlDeviceGetUtilizationRates.
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

/// A run whose record is being written.
struct RunNow {
  std::filesystem::path folder;
  std::int64_t pid = 0;
  std::optional<std::int64_t> step;
  std::optional<double> steps_per_s, samples_per_s;  // of the last ten seconds, all processes together
  std::optional<double> input_share;                 // of the time of these steps
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

  /// The CPU as the device: cores used by the watched tree of those allowed, else those of the machine.
  std::optional<double> cpu_share() const;
  std::optional<double> cpu_used() const;
};

}  // namespace unidle::monitor
