// Memory that torch keeps.
#pragma once

#include <ATen/ATen.h>

namespace unidle::train {

/// Gives back what torch keeps for later steps: to the device's driver, or on the CPU to the system.
void flush_memory(at::Device device);

}  // namespace unidle::train
