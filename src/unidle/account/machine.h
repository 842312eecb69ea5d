// What the machine gave the run: CPUs and GPU.
#pragma once

#include <optional>

#include "unidle/account/own_gpu.h"
#include "unidle/account/readings.h"

namespace unidle::account {

/// Means while training, in CPUs.
struct CpuUse {
  std::optional<double> own;      // by the command and its children
  std::optional<double> machine;  // by all processes
  std::optional<double> others;   // by all other processes
  std::optional<double> delay;    // that the command's threads stood ready for without getting one
};
CpuUse cpu_use(const Readings& readings);

/// CPUs allowed to the run.
struct CpusAllowed {
  std::optional<double> now;       // by affinity and quota, and by the training process's own affinity when narrower
  std::optional<double> at_start;  // before the launch command or the program set a mask; nothing when none did
};
CpusAllowed cpus_allowed(const RunData& run, const Timeline& timeline);

/// Share of the allowed CPUs that the run used while training, 0..1.
std::optional<double> cpu_utilisation(const CpuUse& use, const CpusAllowed& allowed);

/// Share of the time that kernels ran on the run's own GPU while training, 0..1, according to NVML.
std::optional<double> gpu_utilisation(const Readings& readings, const std::optional<OwnGpu>& gpu);

}  // namespace unidle::account
