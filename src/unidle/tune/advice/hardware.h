// What of a machine matters to the choice of knobs.
#pragma once

#include <cstdint>
#include <string>

namespace unidle::tune {

struct Hardware {
  double cpus = 1;        // that this job may use: affinity and quota together
  bool cpu_bf16 = false;  // the CPU has units for bf16
  std::uint64_t memory_bytes = 0;
  int gpus = 0;
  int capability = 0;  // CUDA compute capability of the first GPU times ten, e.g. 90; 0 when unknown
  std::string gpu_name;
  std::uint64_t gpu_memory_bytes = 0;
  std::string gpu_note;  // why no GPU could be read; empty when one was, or when it is known that there is none

  int whole_cpus() const { return cpus < 1 ? 1 : static_cast<int>(cpus); }
};

/// This machine, as telemetry sees it.
Hardware this_machine();

}  // namespace unidle::tune
