// Where the run computes: the device, its threads and its numeric settings.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "unidle/train/config.h"

namespace unidle::train {

/// `wanted` is "auto", "cpu" or "cuda". Loads libtorch_cuda only when an NVIDIA device exists (/dev/nvidiactl,
/// /dev/dxg, or $UNIDLE_FORCE_CUDA is set) and the CPU was not requested: start-up is faster without it. "auto" falls
/// back to the CPU with one warning; "cuda" without a usable device throws kMissing. `index` selects a device of that
/// kind; when the process is shown only one (srun --gpus-per-task=1, CUDA_VISIBLE_DEVICES), it gets that one. A CUDA
/// device becomes this thread's current one, so that nothing is allocated on another.
at::Device choose_device(const std::string& wanted, int index = 0);

/// CPUs for one of `processes` on this machine, of which `sharers` have the same affinity mask: its share of the mask,
/// limited by its share of a cgroup v2 quota. At least one.
int usable_cpus(int processes = 1, int sharers = 1);

/// Applies cpu.threads, precision.tf32, cudnn.benchmark, train.deterministic and the seed to this process, one of
/// `processes` of the run on this machine; `sharers` as above.
void configure_torch(const Config& config, int processes = 1, int sharers = 1);

/// Waits until the device has finished all queued work; returns at once on a CPU.
void synchronize(at::Device device);

}  // namespace unidle::train
