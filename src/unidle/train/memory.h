// Memory that runs out, and memory that is kept.
#pragma once

#include <ATen/ATen.h>

#include <exception>

namespace unidle::train {

/// Whether `failure` says that the device's or the host's memory ran out, as torch's allocators and C++ say it.
bool is_out_of_memory(const std::exception& failure);

/// Gives back what torch keeps for later steps: to the device's driver, or on the CPU to the system.
void flush_memory(at::Device device);

}  // namespace unidle::train
