#include "unidle/account/machine.h"

#include <algorithm>

#include "unidle/base/json.h"
#include "unidle/record/note_types.h"
#include "unidle/telemetry/host_state.h"

namespace unidle::account {

namespace {

/// CPUs to which the training process bound itself, by its last recorded note.
std::optional<double> own_affinity(const RunData& run, const Timeline& timeline) {
  std::optional<double> cpus;
  record::each_note<record::NoteType::kAffinity>(run.notes, [&](const auto& note) {
    const std::size_t count = telemetry::parse_cpu_list(note.text("cpus")).size();
    if (count > 0 && note.text("role") != "worker" && timeline.process && note.process() == *timeline.process) {
      cpus = static_cast<double>(count);
    }
  });
  return cpus;
}

}  // namespace

CpuUse cpu_use(const Readings& readings) {
  CpuUse use{readings.mean(record::series::kTreeCpu), readings.mean(record::series::kHostCpu), std::nullopt,
             readings.mean(record::series::kTreeRunDelay)};
  if (use.own && use.machine) {
    use.others = std::max(0.0, *use.machine - *use.own);
  }
  return use;
}

CpusAllowed cpus_allowed(const RunData& run, const Timeline& timeline) {
  const nlohmann::json host = run.meta_value(record::meta::kHost);
  const auto quota = number_in(host, "cpu_quota");
  const auto within_quota = [&](std::optional<double> cpus) {
    return quota && *quota > 0 ? std::min(cpus.value_or(*quota), *quota) : cpus;
  };
  CpusAllowed allowed{within_quota(number_in(host, "cpus_allowed")), std::nullopt};
  const auto before_launch = number_in(host, "cpus_before_mask");
  const auto widest = before_launch ? within_quota(before_launch) : allowed.now;
  if (const auto own = own_affinity(run, timeline); own && *own < allowed.now.value_or(*own + 1)) {
    allowed.now = own;
  }
  if (widest && allowed.now && *widest > *allowed.now) {
    allowed.at_start = widest;
  }
  return allowed;
}

std::optional<double> cpu_utilisation(const CpuUse& use, const CpusAllowed& allowed) {
  const bool known = use.own && allowed.now.value_or(0) > 0;
  return known ? std::optional(std::clamp(*use.own / *allowed.now, 0.0, 1.0)) : std::nullopt;
}

std::optional<double> gpu_utilisation(const Readings& readings, const std::optional<OwnGpu>& gpu) {
  const auto busy = gpu ? readings.mean(record::series::kGpuUtil, &gpu->subject) : std::nullopt;
  return busy ? std::optional(std::clamp(*busy, 0.0, 1.0)) : std::nullopt;
}

}  // namespace unidle::account
