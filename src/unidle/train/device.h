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

/// CPUs for one of `processes` on this machine, of which `sharers` have the same affinity mask: its part of the mask,
/// bounded by its part of a cgroup v2 quota. At least one.
int usable_cpus(int processes = 1, int sharers = 1);

/// Applies cpu.threads, precision.tf32, cudnn.benchmark, train.deterministic and the seed to the process, which is one
/// of `processes` of the run on this machine; `sharers` as above.
void configure_torch(const Config& config, int processes = 1, int sharers = 1);

/// Waits until the device has done all that was queued; returns at once on a CPU.
void synchronize(at::Device device);

}  // namespace unidle::train
