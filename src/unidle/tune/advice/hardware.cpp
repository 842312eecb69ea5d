#include "unidle/tune/advice/hardware.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "unidle/base/numbers.h"
#include "unidle/base/split.h"
#include "unidle/telemetry/driver_call.h"
#include "unidle/telemetry/host.h"
#include "unidle/telemetry/nvml.h"

namespace unidle::tune {

namespace {

struct Shown {
  const telemetry::GpuFacts* gpu = nullptr;
  const telemetry::MigDevice* slice = nullptr;  // nullptr: the whole device
};

/// The visible GPUs when the variable is not set.
std::vector<Shown> shown_by_default(const std::vector<telemetry::GpuFacts>& gpus) {
  std::vector<Shown> shown;
  for (const telemetry::GpuFacts& gpu : gpus) {
    if (!gpu.hidden && gpu.kind == "cuda") {
      shown.push_back({&gpu, gpu.mig.empty() ? nullptr : &gpu.mig.front()});
    }
  }
  return shown;
}

/// The GPU that one word of the variable names.
std::optional<Shown> named(std::string_view word, const std::vector<Shown>& all) {
  if (const auto number = parse_number<std::size_t>(word)) {
    return *number < all.size() ? std::optional(all[*number]) : std::nullopt;
  }
  for (const Shown& one : word.size() > 4 ? all : std::vector<Shown>{}) {  // more than "GPU-"
    if (one.gpu->uuid.value_or("").starts_with(word)) {
      return one;
    }
    for (const telemetry::MigDevice& slice : one.gpu->mig) {
      if (slice.uuid.starts_with(word)) {
        return Shown{one.gpu, &slice};
      }
    }
  }
  return std::nullopt;
}

std::vector<Shown> shown_by(const std::string& visible, const std::vector<Shown>& all) {
  std::vector<Shown> shown;
  for (const std::string_view part : split(visible, ',')) {
    const std::vector<std::string_view> words = split_words(part);
    const auto one = words.size() == 1 ? named(words[0], all) : std::nullopt;
    if (!one) {
      break;
    }
    shown.push_back(*one);
  }
  return shown;
}

/// Fills in GPU facts only.
Hardware ask_gpus() {
  Hardware hardware;
  std::string reason;
  const std::unique_ptr<telemetry::Nvml> nvml = telemetry::Nvml::load(reason);
  if (nvml == nullptr) {
    hardware.gpu_note = reason;
    return hardware;
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return gpus_shown(telemetry::read_gpu_facts(*nvml),
                    visible != nullptr ? std::optional<std::string>(visible) : std::nullopt);
}

/// Asked only once: a hanging driver blocks the calling thread, and would block the next one.
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

Hardware gpus_shown(const std::vector<telemetry::GpuFacts>& gpus, const std::optional<std::string>& visible) {
  Hardware hardware;
  const std::vector<Shown> all = shown_by_default(gpus);
  const std::vector<Shown> shown = visible ? shown_by(*visible, all) : all;
  if (shown.empty()) {
    hardware.gpu_note = all.empty() ? "" : fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" shows no GPU", *visible);
    return hardware;
  }
  const auto& [gpu, slice] = shown.front();
  hardware.gpus = static_cast<int>(shown.size());
  hardware.gpu_name = gpu->name.empty() ? "the GPU" : gpu->name;
  hardware.capability = static_cast<int>(std::lround(std::atof(gpu->capability.value_or("0").c_str()) * 10));
  hardware.gpu_memory_bytes = gpu->memory_bytes.value_or(0);
  if (slice != nullptr) {
    hardware.gpu_name = slice->name.empty() ? hardware.gpu_name : slice->name;
    hardware.gpu_memory_bytes = slice->memory ? slice->memory->total_bytes : 0;
  }
  return hardware;
}

Hardware this_machine() {
  const telemetry::HostFacts host = telemetry::read_host_facts();
  Hardware hardware = gpus_of_this_machine();
  hardware.cpus = host.cpus_allowed();
  hardware.cpu_bf16 = host.cpu_bf16();
  hardware.memory_bytes = host.memory_bytes;
  return hardware;
}

}  // namespace unidle::tune
