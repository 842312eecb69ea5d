// What a configuration says of the run apart from knobs: what it runs on, and for how long.
#pragma once

#include <optional>
#include <string>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs {

/// A key that says that a run uses no NVIDIA or AMD GPU: device: cpu, use_cpu: true, no_cuda: true, accelerator: mps,
/// distributed_type: MULTI_CPU.
struct DeviceFact {
  std::string device;  // "cpu", or what else it says in small letters: "mps", "tpu"
  std::string path;
  std::string value;
  int line = 0;
};

/// The first such key; nothing where the file leaves the device open, or names a GPU.
std::optional<DeviceFact> device_other_than_gpu(const ConfigFile& file);

/// The fewest steps that a key limits training to: max_steps: 10, train_iters, limit_train_batches, max_duration: 10ba.
std::optional<long long> most_steps(const ConfigFile& file);

/// The most devices that share a micro-batch, as a key asks for: the stages of a pipeline, which micro-batches fill, or
/// the parts of a sequence. 1 where none does. Such programs are particular about the size of a micro-batch.
long long devices_of_a_batch(const ConfigFile& file);

/// GPUs of a machine that a key gives the run, each with a process and a loader of its own: devices: 8, gpus: [0, 1],
/// nproc_per_node: 4. 1 where none does.
long long gpus_of_a_machine(const ConfigFile& file);

/// Keys of a training that generates its own samples (PPO, GRPO): its steps wait for that, and not for the loader.
bool generates_samples(const ConfigFile& file);

}  // namespace unidle::knobs
