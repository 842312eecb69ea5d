#include "unidle/observe/devices.h"

#include <cstdlib>
#include <utility>

#include "unidle/base/abandonable_thread.h"
#include "unidle/telemetry/gpu.h"

namespace unidle::observe {

namespace {

constexpr const char* kNotToTheEnd = "GPUs were not read to the end: ";

nlohmann::json device_json(const std::vector<telemetry::GpuFacts>& gpus) {
  nlohmann::json json = nlohmann::json::array();
  for (const telemetry::GpuFacts& gpu : gpus) {
    if (gpu.hidden) {
      continue;  // of another run
    }
    nlohmann::json& entry = json.emplace_back(nlohmann::json{{"index", gpu.index}, {"name", gpu.name}});
    if (gpu.memory_bytes) {
      entry["memory_bytes"] = *gpu.memory_bytes;
    }
    if (gpu.capability) {
      entry["capability"] = *gpu.capability;
    }
    entry["kind"] = gpu.kind;
    if (gpu.power_limit_w) {
      entry["power_limit_w"] = *gpu.power_limit_w;
    }
    if (gpu.power_default_limit_w) {
      entry["power_default_limit_w"] = *gpu.power_default_limit_w;
    }
    if (gpu.sm_clock_max_mhz) {
      entry["sm_clock_max_mhz"] = *gpu.sm_clock_max_mhz;
    }
    if (gpu.uuid) {
      entry["uuid"] = *gpu.uuid;
    }
    if (gpu.pci_bus_id) {
      entry["pci"] = *gpu.pci_bus_id;
    }
    if (gpu.pcie.max_generation && gpu.pcie.max_width) {
      entry["pcie_max"] = {{"generation", *gpu.pcie.max_generation}, {"width", *gpu.pcie.max_width}};
    }
    if (gpu.numa_node) {
      entry["numa_node"] = *gpu.numa_node;
    }
    for (const telemetry::MigDevice& slice : gpu.mig) {
      nlohmann::json& one =
          entry["mig"].emplace_back(nlohmann::json{{"index", slice.index}, {"name", slice.name}, {"uuid", slice.uuid}});
      if (slice.memory) {
        one["memory_bytes"] = slice.memory->total_bytes;
      }
    }
  }
  return json;
}

Devices::Found look(std::int64_t root_pid, telemetry::Sampler::Sources& sources) {
  Devices::Found found;
  telemetry::GpuInventory inventory = telemetry::find_gpus();
  if (!inventory.known || (std::getenv("UNIDLE_NVML_LIBRARY") != nullptr && !inventory.problem.empty())) {
    found.problem = "GPUs were not read: " + inventory.problem;
  }
  std::vector<telemetry::GpuFacts> facts;
  for (std::unique_ptr<telemetry::GpuReader>& reader : inventory.readers) {
    const std::vector<telemetry::GpuFacts> more = reader->facts();
    facts.insert(facts.end(), more.begin(), more.end());
    found.nvml = found.nvml || (!more.empty() && more.front().kind == "cuda");
    sources.push_back(telemetry::gpu_source(std::move(reader), root_pid));
  }
  if (inventory.known || !facts.empty()) {
    found.gpus = device_json(facts);
  }
  return found;
}

}  // namespace

Devices::Devices(Clock& clock, std::int64_t root_pid, telemetry::Sink sink) : slot_(std::make_shared<Slot>()) {
  if (has_abandoned_threads()) {  // it did not answer in an earlier run of this process, and may hold the loader's lock
    slot_->found = Found{std::nullopt, kNotToTheEnd + std::string("the driver does not answer"), false};
    return;
  }
  const auto make = [slot = slot_, calls = calls_, root_pid] {
    telemetry::DriverCalls::follow(calls);
    telemetry::Sampler::Sources sources;
    Found found = look(root_pid, sources);
    const std::lock_guard lock(slot->mutex);
    slot->found = std::move(found);
    return sources;
  };
  sampler_ = std::make_unique<telemetry::Sampler>(clock, telemetry::kSampleInterval_ns, make, std::move(sink));
}

std::optional<Devices::Found> Devices::take_found() {
  const std::lock_guard lock(slot_->mutex);
  return std::exchange(slot_->found, std::nullopt);
}

std::optional<std::string> Devices::end() {
  return !sampler_ || sampler_->end() ? std::nullopt : std::optional(kNotToTheEnd + calls_->no_answer());
}

}  // namespace unidle::observe
