// A torch profiler trace (Chrome JSON, plain or gzip): what the device did, and what the host did meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "unidle/logs/gpu_log.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

struct KernelUse {
  std::string name;
  std::int64_t count = 0;
  double total_s = 0;
};

/// A time in which no device worked.
struct DeviceGap {
  double begin_s = 0;  // since the begin of the window
  double seconds = 0;
  std::string host;  // the most specific host event that spans most of it; empty when none was seen
};

/// One device of the trace.
struct DeviceUse {
  std::string id;
  double busy_s = 0;  // union of kernels, copies and fills over all streams, inside the window
};

/// Where the steps went, on the thread that runs them; shares of their time, summing to 1 with `rest`.
struct StepParts {
  double input = 0;      // enumerate(DataLoader)
  double sync = 0;       // cuda*Synchronize
  double transfer = 0;   // cudaMemcpy calls, which block for pageable memory
  double optimizer = 0;  // Optimizer.step
  double rest = 0;
};

struct TraceSummary {
  std::string file;
  std::int64_t events = 0;
  double span_s = 0;    // first event to last
  double window_s = 0;  // first step to last where steps are marked, otherwise the device's first work to its last
  double begin_us = 0;  // of the window, on the trace's own clock
  std::vector<DeviceUse> devices;  // empty: nothing ran on a device
  std::vector<DeviceGap> gaps;     // of the busiest device, longest first, at most five
  std::vector<KernelUse> kernels;  // by time, at most ten
  std::int64_t kernel_count = 0;
  double kernel_s = 0;  // sum over kernels; more than busy_s where streams overlap
  Readings step_s;      // by ProfilerStep
  std::optional<StepParts> parts;
  std::optional<double> syncs_per_step;   // calls that make the host wait for the device
  std::optional<bool> loader_in_process;  // the loader has no worker processes
  std::string device_name;
  std::optional<std::string> capability;  // "9.0"
  std::optional<double> device_memory;    // bytes

  const DeviceUse* busiest() const;
};

/// Throws kInput when it is no such trace, is damaged or cut off. Memory follows the number of gaps between kernels and
/// of long host events, not the size of the file.
TraceSummary read_trace(Source& source);

}  // namespace unidle::logs
