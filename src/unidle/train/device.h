// Where the run computes: the device, its threads and its numeric switches.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "unidle/train/config.h"

namespace unidle::train {

/// "auto", "cpu" or "cuda". libtorch_cuda is loaded here, and only when an NVIDIA device is there (/dev/nvidiactl,
/// /dev/dxg, or $UNIDLE_FORCE_CUDA is set) and the CPU was not asked for: start-up without it is faster.
/// auto falls back to the CPU with one warning; "cuda" without a usable device throws kMissing.
/// `index`: which of the devices of its kind; where this process of a run is shown one alone (srun --gpus-per-task=1,
/// CUDA_VISIBLE_DEVICES), that one. A CUDA device becomes the current one of this thread, so that nothing is made on
/// another.
at::Device choose_device(const std::string& wanted, int index = 0);

/// CPUs that this process may use: the affinity mask, bounded by a cgroup v2 quota.
int usable_cpus();

/// Applies cpu.threads, precision.tf32, cudnn.benchmark, train.deterministic and the seed to the process. `sharers`:
/// the processes of the run on this machine, which share its CPUs.
void configure_torch(const Config& config, int sharers = 1);

/// Waits until the device has done all that was queued; returns at once on a CPU.
void synchronize(at::Device device);

}  // namespace unidle::train
