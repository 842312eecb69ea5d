// Reads what a configuration says about the run apart from knobs: its device and its length.
#pragma once

#include <optional>
#include <string>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs {

/// A key that means that the run uses no NVIDIA or AMD GPU: device: cpu, use_cpu: true, no_cuda: true, accelerator:
/// mps, distributed_type: MULTI_CPU.
struct DeviceFact {
  std::string device;  // in lower case: "cpu", "mps", "tpu"
  std::string path;
  std::string value;
  int line = 0;
};

/// The first such key; nothing if the file does not set the device, or names a GPU.
std::optional<DeviceFact> device_other_than_gpu(const ConfigFile& file);

/// The smallest limit of training steps: max_steps: 10, train_iters, limit_train_batches, max_duration: 10ba.
std::optional<long long> most_steps(const ConfigFile& file);

/// The largest configured number of devices that share a micro-batch: pipeline stages, which micro-batches fill, or
/// sequence parallelism. 1 if there is none. Such programs restrict the size of a micro-batch.
long long devices_of_a_batch(const ConfigFile& file);

/// The configured number of GPUs per machine, each with its own process and loader: devices: 8, gpus: [0, 1],
/// nproc_per_node: 4. 1 if there is none.
long long gpus_of_a_machine(const ConfigFile& file);

/// Whether the training generates its own samples (PPO, GRPO): its steps wait for generation, not for the loader.
bool generates_samples(const ConfigFile& file);

}  // namespace unidle::knobs
