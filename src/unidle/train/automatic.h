// Resolves settings whose value depends on the device.
#pragma once

#include <ATen/ATen.h>

#include "unidle/train/config.h"

namespace unidle::train {

/// Returns `config` with its open settings resolved for `device`. precision.amp: auto becomes bf16 on a GPU with bf16
/// units, otherwise off: on a CPU the workloads' own kernels compute in fp32. compile.mode: auto becomes graph on a
/// GPU, otherwise off. train.samples: on a GPU it becomes train.samples_on_gpu, when that is set and the command line
/// sets no length.
Config chosen_on(at::Device device, const Config& config);

}  // namespace unidle::train
