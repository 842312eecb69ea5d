// What the machine gave the run: CPUs and device.
#pragma once

#include <optional>

#include "unidle/account/own_gpu.h"
#include "unidle/account/readings.h"

namespace unidle::account {

/// Means while training, in CPUs.
struct CpuUse {
  std::optional<double> own;      // by the command and its children
  std::optional<double> machine;  // by everybody
  std::optional<double> others;   // by everybody else
};
CpuUse cpu_use(const Readings& readings);

/// CPUs that the run may use.
struct CpusAllowed {
  std::optional<double> now;  // by affinity and quota, and by the training process's own affinity where it is narrower
  std::optional<double> at_start;  // before the program narrowed itself; nothing where it did not
};
CpusAllowed cpus_allowed(const RunData& run, const Timeline& timeline);

/// Share of the time that kernels ran on the run's own GPU while training, 0..1, as NVML says.
std::optional<double> gpu_utilisation(const Readings& readings, const std::optional<OwnGpu>& gpu);

}  // namespace unidle::account
