// Settings that leave a choice to the device.
#pragma once

#include <ATen/ATen.h>

#include "unidle/train/config.h"

namespace unidle::train {

/// `config` with what its open settings come to on `device`:
/// precision.amp: auto is bf16 on a GPU that has units for it, else off: on a CPU the workloads' own operations compute
/// in fp32. compile.mode: auto is graph on a GPU, else off. train.samples: on a GPU train.samples_on_gpu, where that is
/// set and the command line says nothing of the length.
Config chosen_on(at::Device device, const Config& config);

}  // namespace unidle::train
