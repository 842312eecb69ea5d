#include "unidle/logs/gpu_log.h"

#include "unidle/logs/gpu_format.h"

namespace unidle::logs {

void GpuUse::add(const GpuSample& sample) {
  ++samples;
  if (name.empty()) {
    name = sample.name;
  }
  utilisation.add(sample.utilisation);
  memory_utilisation.add(sample.memory_utilisation);
  memory_used.add(sample.memory_used);
  memory_total.add(sample.memory_total);
  if (sample.memory_free && sample.memory_total && !sample.memory_used) {
    memory_used.add(*sample.memory_total - *sample.memory_free);
  }
  power_w.add(sample.power_w);
  power_limit_w.add(sample.power_limit_w);
  temperature_c.add(sample.temperature_c);
  sm_mhz.add(sample.sm_mhz);
  sm_mhz_most.add(sample.sm_mhz_most);
  link_gen.add(sample.link_gen);
  link_gen_most.add(sample.link_gen_most);
  link_width.add(sample.link_width);
  link_width_most.add(sample.link_width_most);
  throttled_known += sample.throttled ? 1 : 0;
  throttled += sample.throttled.value_or(false) ? 1 : 0;
  const bool idle = sample.utilisation && *sample.utilisation <= 0;
  idle_samples += idle ? 1 : 0;
  if (!sample.t_ns) {
    return;
  }
  first_ns = std::min(first_ns.value_or(*sample.t_ns), *sample.t_ns);
  last_ns = std::max(last_ns.value_or(*sample.t_ns), *sample.t_ns);
  if (!idle) {
    idle_since_ns_.reset();
    return;
  }
  idle_since_ns_ = idle_since_ns_.value_or(*sample.t_ns);
  longest_idle_ns = std::max(longest_idle_ns, *sample.t_ns - *idle_since_ns_);
}

void GpuLog::add(const GpuSample& sample) {
  ++samples;
  if (sample.t_ns) {
    first_ns = std::min(first_ns.value_or(*sample.t_ns), *sample.t_ns);
    last_ns = std::max(last_ns.value_or(*sample.t_ns), *sample.t_ns);
  }
  for (GpuUse& use : gpus) {
    if (use.id == sample.id) {
      use.add(sample);
      return;
    }
  }
  constexpr std::size_t kMost = 1024;  // more than any machine has; bounds the memory for a damaged file
  if (gpus.size() < kMost) {
    gpus.emplace_back().id = sample.id;
    gpus.back().add(sample);
  }
}

const GpuUse* GpuLog::busiest() const {
  const GpuUse* best = nullptr;
  for (const GpuUse& use : gpus) {
    if (use.utilisation && (best == nullptr || use.utilisation.mean() > best->utilisation.mean())) {
      best = &use;
    }
  }
  return best;
}

const GpuFormat* gpu_format_of(std::string_view head) {
  for (const GpuFormat* format : all_gpu_formats()) {
    if (format->matches(head)) {
      return format;
    }
  }
  return nullptr;
}

std::string gpu_programs() {
  std::string names;
  for (const GpuFormat* format : all_gpu_formats()) {
    names.append(names.empty() ? "" : ", ").append(format->program);
  }
  return names;
}

}  // namespace unidle::logs
