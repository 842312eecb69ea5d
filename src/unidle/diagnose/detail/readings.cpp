#include "unidle/diagnose/detail/readings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "unidle/base/json.h"

namespace unidle::diagnose::detail {

namespace {

using nlohmann::json;

/// Bits of NVML's clocks-event reasons (nvml.h, nvmlClocksEventReason...): power, then heat and hardware.
constexpr std::array<std::pair<std::uint64_t, const char*>, 5> kReasons = {{{0x04, "power limit"},
                                                                            {0x08, "hardware slowdown"},
                                                                            {0x20, "software thermal limit"},
                                                                            {0x40, "hardware thermal limit"},
                                                                            {0x80, "power brake"}}};

void read_throttling(const Readings& readings, const std::string& gpu, Signals& signals) {
  const std::vector<double> bits = readings.training(record::series::kGpuThrottle, &gpu);
  if (bits.empty()) {
    return;
  }
  std::array<int, kReasons.size()> seen{};
  int any = 0;
  for (const double reading : bits) {
    const auto mask = reading >= 0 && reading < 1e15 ? static_cast<std::uint64_t>(reading) : 0;
    bool one = false;
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      const bool set = (mask & kReasons[i].first) != 0;
      seen[i] += set ? 1 : 0;
      one = one || set;
    }
    any += one ? 1 : 0;
  }
  signals.gpu.throttled = static_cast<double>(any) / static_cast<double>(bits.size());
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (seen[i] > 0) {
      signals.gpu.throttle_reasons +=
          (signals.gpu.throttle_reasons.empty() ? "" : ", ") + std::string(kReasons[i].second);
    }
  }
  signals.gpu.throttled_by_power_only =
      any == seen[0] && std::all_of(seen.begin() + 1, seen.end(), [](int n) { return n == 0; });
}

void read_activity(const Readings& readings, const std::string& units, Signals& signals) {
  const auto share = [&](std::string_view name) {
    const auto mean = readings.mean(name, &units);
    return mean ? std::optional(std::clamp(*mean, 0.0, 1.0)) : std::nullopt;
  };
  signals.sm_activity = share("gpu.sm_activity");
  signals.tensor_activity = share("gpu.tensor_activity");
}

void read_foreign(const Readings& readings, const std::string& gpu, Signals& signals) {
  const std::vector<double> bytes = readings.training(record::series::kGpuForeign, &gpu);
  if (!bytes.empty()) {
    const auto held = std::count_if(bytes.begin(), bytes.end(), [](double value) { return value > 0; });
    signals.gpu.shared = static_cast<double>(held) / static_cast<double>(bytes.size());
    signals.gpu.foreign_bytes = std::accumulate(bytes.begin(), bytes.end(), 0.0) / static_cast<double>(bytes.size());
  }
}

void read_memory(const json& facts, const Readings& readings, const std::string& gpu, Signals& signals) {
  const auto bytes = number_in(facts, "memory_bytes");
  const auto used = readings.most(record::series::kGpuMemory, &gpu);
  if (bytes && *bytes > 0) {
    signals.gpu.memory_bytes = std::llround(*bytes);
    if (used) {
      signals.gpu_memory_used = std::clamp(*used / *bytes, 0.0, 1.0);
    }
  }
}

void read_facts(const json& facts, Signals& signals) {
  const json pcie = facts.is_object() ? facts.value("pcie_max", json::object()) : json::object();
  signals.gpu.link_width_max = number_in(pcie, "width");
  signals.gpu.link_generation_max = number_in(pcie, "generation");
  signals.gpu.clock_max_mhz = number_in(facts, "sm_clock_max_mhz");
  signals.gpu.power_default_limit_w = number_in(facts, "power_default_limit_w");
  if (const std::string capability = text_in(facts, "capability"); !capability.empty()) {
    signals.gpu_capability = capability;
  }
}

}  // namespace

void read_host_series(const account::RunData& run, const Readings& readings, Signals& signals) {
  signals.read_bytes_per_s = readings.mean(record::series::kTreeRead);
  signals.disk_wait = readings.mean("tree.disk_wait");
  signals.threads = readings.mean("tree.threads");
  signals.processes = readings.mean("tree.processes");
  const json host = run.meta_value(record::meta::kHost);
  auto limit = number_in(host, "memory_limit");
  if (const auto machine = number_in(host, "memory_bytes")) {
    limit = std::min(limit.value_or(*machine), *machine);
  }
  const auto most = account::max_over_run(run, record::series::kTreeMemory);
  if (limit && *limit > 0 && most) {
    signals.host_memory_used = std::clamp(*most / *limit, 0.0, 1.0);
  }
}

void read_gpu_series(const account::Account& account, const Readings& readings, Language language, Signals& signals) {
  const std::optional<account::OwnGpu>& own = account.gpu;
  if (!own) {
    return;
  }
  const std::string& gpu = own->subject;
  if (account.gpu_utilisation) {
    signals.utilisation = signals.device_busy = account.gpu_utilisation;
    signals.busy_is_limit = true;
    signals.device_busy_how =
        translate(language, "NVML utilisation while training ({}): some kernel ran, on however few units", gpu);
  }
  read_activity(readings, own->slice.value_or(gpu), signals);
  if (own->facts.is_object()) {
    read_facts(own->facts, signals);
  }
  if (own->slice) {
    read_memory(own->slice_facts, readings, *own->slice, signals);
  } else if (!own->sliced()) {
    read_memory(own->facts, readings, gpu, signals);
    read_foreign(readings, gpu, signals);
  }
  signals.gpu.clock_mhz = readings.mean("gpu.sm_clock", &gpu);
  signals.gpu.power_limit_w = readings.mean(record::series::kGpuPowerLimit, &gpu);
  signals.gpu.link_width = readings.most(record::series::kGpuPcieWidth, &gpu);
  signals.gpu.link_generation = readings.most(record::series::kGpuPcieGeneration, &gpu);
  signals.gpu.link_received = readings.most("gpu.pcie_rx", &gpu);
  read_throttling(readings, gpu, signals);
}

void read_kernel_series(const Readings& readings, Language language, Signals& signals) {
  std::optional<double> most;
  for (const std::string& gpu : readings.subjects("cupti.busy")) {
    const auto busy = readings.mean("cupti.busy", &gpu);
    if (busy && *busy > most.value_or(-1)) {
      most = busy;
      signals.device_busy = std::clamp(*busy, 0.0, 1.0);
      signals.kernel_time_known = true;
      signals.busy_is_limit = false;
      signals.device_busy_how =
          translate(language, "kernels and copies while training ({}), the union of all streams", gpu);
    }
  }
}

}  // namespace unidle::diagnose::detail
