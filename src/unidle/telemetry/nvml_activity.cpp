// Readings over time: utilisation samples, shares of processes, GPM, PCIe traffic, critical errors.
#include <algorithm>
#include <array>
#include <utility>

#include "unidle/telemetry/detail/nvml_gpm.h"

namespace unidle::telemetry {

Measured<double> Nvml::utilisation_since(unsigned device) {
  const bool present = api_->samples != nullptr && !without_samples_.contains(device);
  return ask<double>(device, present, [&](nvml::Device known, double* value) {
    // More than any driver keeps (100 to 120), so that one call is enough.
    constexpr std::size_t kMostSamples = 512;
    sample_buffer_.resize(kMostSamples);
    unsigned type = 0;
    auto count = static_cast<unsigned>(kMostSamples);
    unsigned long long& seen_us = samples_us_[device];
    const unsigned long long before_us = seen_us;
    const int result = api_->samples(known, nvml::kUtilisationSamples, before_us, &type, &count, sample_buffer_.data());
    if (result != nvml::kSuccess) {
      if (result == nvml::kNotSupported) {
        without_samples_.insert(device);
      }
      return result;
    }
    double sum = 0;
    std::size_t used = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, kMostSamples); ++i) {
      const nvml::Sample& sample = sample_buffer_[i];
      if (sample.t_us > before_us) {
        sum += sample.value.number;
        ++used;
      }
      seen_us = std::max(seen_us, sample.t_us);
    }
    *value = used > 0 ? sum / static_cast<double>(used) / 100.0 : 0;
    // The first buffer holds what happened before we started.
    return used == 0 || before_us == 0 ? nvml::kNotFound : nvml::kSuccess;
  });
}

void Nvml::add_shares(unsigned device, std::vector<GpuProcess>& processes) {
  const nvml::Device known = handle(device);
  if (processes.empty() || known == nullptr || api_->process_utilization == nullptr) {
    return;
  }
  unsigned count = 0;
  unsigned long long& seen_us = processes_us_[device];
  api_->process_utilization(known, nullptr, &count, seen_us);  // returns "too small" and the number of entries
  std::vector<nvml::ProcessUtilization> samples(count);
  const int result = count > 0 ? api_->process_utilization(known, samples.data(), &count, seen_us) : nvml::kNotFound;
  if (result != nvml::kSuccess) {
    // Nothing ran since the last call: a measured zero if the driver keeps shares at all.
    for (GpuProcess& process : processes) {
      process.share = result == nvml::kNotFound && seen_us > 0 ? std::optional(0.0) : std::nullopt;
    }
    return;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  for (GpuProcess& process : processes) {
    double sum = 0;
    int used = 0;
    for (const nvml::ProcessUtilization& sample : samples) {
      const bool ours = static_cast<std::int64_t>(sample.pid) == process.pid && sample.sm <= 100;
      sum += ours ? sample.sm / 100.0 : 0;
      used += ours ? 1 : 0;
    }
    process.share = used > 0 ? sum / used : 0;
  }
  for (const nvml::ProcessUtilization& sample : samples) {
    seen_us = std::max(seen_us, sample.t_us);
  }
}

Measured<double> Nvml::pcie_bytes_s(unsigned device, bool to_device) {
  const unsigned counter = to_device ? nvml::kPcieRx : nvml::kPcieTx;
  return scaled(ask<unsigned>(device, api_->pcie_throughput != nullptr,
                              [&](auto d, unsigned* v) { return api_->pcie_throughput(d, counter, v); }),
                1024);  // the library counts KiB
}

Nvml::Gpm::~Gpm() {
  for (const nvml::GpmSample sample : {older, newer}) {
    if (sample != nullptr) {
      api.gpm_free(sample);
    }
  }
}

bool Nvml::Gpm::sample(nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t t_ns) {
  if (!usable || (newer_ns && t_ns - *newer_ns <= nvml::kGpmSpacing_ns)) {
    return false;
  }
  if (older == nullptr && (api.gpm_alloc(&older) != nvml::kSuccess || api.gpm_alloc(&newer) != nvml::kSuccess)) {
    usable = false;
    return false;
  }
  std::swap(older, newer);
  const int result = gpu_instance ? api.gpm_mig_sample(device, *gpu_instance, newer) : api.gpm_sample(device, newer);
  if (result != nvml::kSuccess) {
    usable = result == nvml::kGpuIsLost;  // refused permanently, e.g. by permission; a lost device may come back
    newer_ns.reset();
    return false;
  }
  return std::exchange(newer_ns, t_ns).has_value();
}

GpmActivity Nvml::gpm_between(Gpm& state, nvml::Device device, std::optional<unsigned> gpu_instance,
                              std::int64_t t_ns) {
  if (!state.sample(device, gpu_instance, t_ns)) {
    return {};
  }
  constexpr double kMiB = 1024.0 * 1024.0;
  GpmActivity activity;
  struct Wanted {
    unsigned metric;
    std::optional<double>* place;
    double factor;
  };
  const std::array<Wanted, 6> wanted = {{{nvml::kGpmSmActivity, &activity.sm, 0.01},
                                         {nvml::kGpmSmOccupancy, &activity.occupancy, 0.01},
                                         {nvml::kGpmTensorActivity, &activity.tensor, 0.01},
                                         {nvml::kGpmDramActivity, &activity.dram, 0.01},
                                         {nvml::kGpmPcieTx, &activity.pcie_tx_bytes_s, kMiB},
                                         {nvml::kGpmPcieRx, &activity.pcie_rx_bytes_s, kMiB}}};
  nvml::GpmMetrics& metrics = state.metrics;
  metrics.version = 1;
  metrics.count = static_cast<unsigned>(wanted.size());
  metrics.first = state.older;
  metrics.second = state.newer;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    metrics.metrics[i] = {wanted[i].metric, nvml::kNotSupported, 0, nullptr, nullptr, nullptr};
  }
  if (api_->gpm_metrics(&metrics) == nvml::kSuccess) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (metrics.metrics[i].result == nvml::kSuccess) {
        *wanted[i].place = metrics.metrics[i].value * wanted[i].factor;
      }
    }
  }
  return activity;
}

GpmActivity Nvml::gpm(unsigned device, std::int64_t t_ns) {
  const nvml::Device known = handle(device);
  if (known == nullptr || api_->gpm_support == nullptr || api_->gpm_alloc == nullptr || api_->gpm_free == nullptr ||
      api_->gpm_sample == nullptr || api_->gpm_metrics == nullptr) {
    return {};
  }
  auto& state = gpm_[{device, nvml::kNoInstance}];
  if (!state) {
    state = std::make_unique<Gpm>(*api_);
    nvml::GpmSupport support{1, 0};
    state->usable = api_->gpm_support(known, &support) == nvml::kSuccess && support.supported != 0;
  }
  return gpm_between(*state, known, std::nullopt, t_ns);
}

bool Nvml::gpm_usable(unsigned device) const {
  const auto state = gpm_.find({device, nvml::kNoInstance});
  return state != gpm_.end() && state->second->usable;
}

GpmActivity Nvml::gpm_mig(unsigned device, unsigned gpu_instance, std::int64_t t_ns) {
  const nvml::Device known = handle(device);
  if (known == nullptr || api_->gpm_alloc == nullptr || api_->gpm_free == nullptr || api_->gpm_mig_sample == nullptr ||
      api_->gpm_metrics == nullptr) {
    return {};
  }
  auto& state = gpm_[{device, gpu_instance}];
  if (!state) {
    state = std::make_unique<Gpm>(*api_);
  }
  return gpm_between(*state, known, gpu_instance, t_ns);
}

std::vector<Xid> Nvml::xids() {
  const bool present =
      api_->event_set_create != nullptr && api_->event_register != nullptr && api_->event_wait != nullptr;
  const unsigned devices = count().value.value_or(0);
  if (present && !events_tried_) {
    events_tried_ = true;
    if (api_->event_set_create(&events_) != nvml::kSuccess) {
      events_ = nullptr;
    }
    for (unsigned device = 0; events_ != nullptr && device < devices; ++device) {
      if (const nvml::Device known = handle(device)) {
        api_->event_register(known, nvml::kEventXid, events_);
      }
    }
  }
  std::vector<Xid> found;
  constexpr std::size_t kMost = 64;  // bounds the loop when a device keeps failing
  for (nvml::EventData event{}; events_ != nullptr && found.size() < kMost; event = {}) {
    if (api_->event_wait(events_, &event, 0) != nvml::kSuccess) {
      break;
    }
    const auto device = std::find(handles_.begin(), handles_.end(), event.device);
    if (event.type == nvml::kEventXid && device != handles_.end()) {
      found.push_back({static_cast<unsigned>(device - handles_.begin()), event.data});
    }
  }
  return found;
}

}  // namespace unidle::telemetry
