// Measures what torch reaches on this machine: arithmetic by precision, copies to the device, launch cost.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace unidle::train {

struct MachineSpeedOptions {
  double seconds = 0.5;   // for each measurement, after warm-up
  std::int64_t size = 0;  // of the square matrices; 0: 1024 on a CPU, 8192 on a GPU
  std::int64_t copy_bytes = 256 << 20;
};

/// {"torch", "devices": [{"device", "threads", "matmul_tflops": {"fp32", "tf32", "bf16", "fp16"},
/// "copy_pinned_bytes_s", "copy_pageable_bytes_s", "launch_s"}]}: the CPU, and the first GPU if there is one.
/// Unsupported values are null. tf32 and the copies are for GPUs only.
nlohmann::json measure_machine(const MachineSpeedOptions& options = {});

/// Takes the arguments after "speed" on the command line; returns the exit code.
int speed_main(int argc, char** argv);

}  // namespace unidle::train
