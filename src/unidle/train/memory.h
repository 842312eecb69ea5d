// Memory that torch caches.
#pragma once

#include <ATen/ATen.h>

namespace unidle::train {

/// Releases the memory that torch caches: to the device's driver, or on a CPU to the system.
void flush_memory(at::Device device);

}  // namespace unidle::train
