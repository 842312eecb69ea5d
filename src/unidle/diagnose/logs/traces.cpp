// What a profiler trace tells about steps and the device.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::trace::DeviceUse;
using unidle::trace::TraceSummary;

constexpr std::size_t kKernelsTold = 3;
constexpr std::size_t kLongestName = 60;

std::string short_name(const std::string& name) {
  return fmt::format("{:.{}}{}", name, kLongestName, name.size() > kLongestName ? "..." : "");
}

std::string describe(const TraceSummary& trace, const DeviceUse& device) {
  std::string text = fmt::format("profiler trace, device {}: kernels and copies cover {} of {}", device.id,
                                 format_seconds(device.busy_s), format_seconds(trace.window_s));
  if (!trace.gaps.empty()) {
    const auto& gap = trace.gaps.front();
    text += fmt::format("; longest gap {}{}{}", format_seconds(gap.seconds),
                        gap.host.empty() ? "" : " while the host was in ", short_name(gap.host));
  }
  if (trace.kernel_count > 0) {
    text += fmt::format("; {} kernels of {} on average, most time in", grouped(static_cast<double>(trace.kernel_count)),
                        format_seconds(trace.kernel_s / static_cast<double>(trace.kernel_count)));
    for (std::size_t i = 0; i < std::min(kKernelsTold, trace.kernels.size()); ++i) {
      text += fmt::format("{} {} ({})", i == 0 ? "" : ",", short_name(trace.kernels[i].name),
                          format_share(trace.kernels[i].total_s / std::max(trace.kernel_s, 1e-12)));
    }
  }
  return text;
}

void add_step(const TraceSummary& trace, Signals& signals) {
  if (!trace.step_s) {
    return;
  }
  signals.steps = std::max(signals.steps.value_or(0), trace.step_s.count);
  signals.step_s = trace.step_s.mean();
  signals.syncs_per_step = trace.syncs_per_step;
  if (trace.parts) {
    signals.step = StepShares{.input = trace.parts->input,
                              .transfer = trace.parts->transfer,
                              .compute = trace.parts->rest,
                              .sync = trace.parts->sync,
                              .optimizer = trace.parts->optimizer,
                              .other = 0};
  }
  if (signals.wall_s <= 0) {
    signals.wall_s = trace.span_s;
    signals.time.train = std::min(trace.step_s.sum, trace.span_s);
    signals.time.other = trace.span_s - signals.time.train;
  }
}

}  // namespace

void add_traces(const JobLogs& job, Signals& signals) {
  // Of several (one a rank) the one whose device is least busy shows most.
  const TraceSummary* chosen = nullptr;
  const auto busy = [](const TraceSummary& trace) {
    const DeviceUse* device = trace.busiest();
    return device == nullptr || trace.window_s <= 0 ? 1.0 : device->busy_s / trace.window_s;
  };
  for (const TraceSummary& trace : job.traces) {
    chosen = chosen == nullptr || busy(trace) < busy(*chosen) ? &trace : chosen;
  }
  if (chosen == nullptr) {
    return;
  }
  const DeviceUse* device = chosen->busiest();
  if (device != nullptr) {
    signals.device_kind = "cuda";
    signals.gpus = std::max(signals.gpus.value_or(0), static_cast<int>(chosen->devices.size()));
    signals.device_busy = std::clamp(busy(*chosen), 0.0, 1.0);
    signals.device_busy_how = describe(*chosen, *device);
  } else if (signals.device_kind == "unknown") {
    signals.device_kind = "cpu";
  }
  if (chosen->capability) {
    signals.gpu_capability = chosen->capability;
  }
  if (chosen->loader_in_process == true) {
    signals.settings["loader.workers"].effective = "0";
  }
  add_step(*chosen, signals);
  if (signals.wall_s <= 0) {
    signals.wall_s = chosen->span_s;
    signals.time.other = chosen->span_s;
  }
}

}  // namespace unidle::diagnose::detail
