#include "unidle/tune/advice/hardware.h"

#include <cmath>
#include <cstdlib>

#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/nvml.h"

namespace unidle::tune {

namespace {

/// Of the devices alone.
Hardware ask_gpus() {
  Hardware hardware;
  std::string reason;
  const std::unique_ptr<telemetry::Nvml> nvml = telemetry::Nvml::load(reason);
  if (nvml == nullptr) {
    hardware.gpu_note = reason;
    return hardware;
  }
  const auto count = nvml->count();
  if (!count || *count == 0) {
    return hardware;
  }
  hardware.gpus = static_cast<int>(*count);
  hardware.gpu_name = nvml->name(0).value.value_or("the GPU");
  if (const auto capability = nvml->capability(0)) {
    hardware.capability = static_cast<int>(std::lround(std::atof(capability.value->c_str()) * 10));
  }
  if (const auto memory = nvml->memory(0)) {
    hardware.gpu_memory_bytes = memory.value->total_bytes;
  }
  return hardware;
}

/// Asked once: a driver that hangs keeps the thread that asked, and would keep the next one.
const Hardware& gpus_of_this_machine() {
  static const Hardware kGpus = [] {
    std::string problem;
    Hardware hardware = telemetry::ask_driver<Hardware>(ask_gpus, problem).value_or(Hardware{});
    hardware.gpu_note = problem.empty() ? hardware.gpu_note : problem;
    return hardware;
  }();
  return kGpus;
}

}  // namespace

Hardware this_machine() {
  const telemetry::HostFacts host = telemetry::read_host_facts();
  Hardware hardware = gpus_of_this_machine();
  hardware.cpus = host.cpus_allowed();
  hardware.cpu_bf16 = host.cpu_bf16();
  hardware.memory_bytes = host.memory_bytes;
  return hardware;
}

}  // namespace unidle::tune
