// What a profiler trace tells about steps and the device.
#include <algorithm>

#include "unidle/diagnose/detail/trace_facts.h"
#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::trace::DeviceUse;
using unidle::trace::TraceSummary;

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
  const auto busy = [](const TraceSummary& trace) { return trace.busy().value_or(1.0); };
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
    signals.device_busy = busy(*chosen);
    signals.device_busy_how = describe(*chosen, *device, job.language);
  } else if (signals.device_kind == "unknown") {
    signals.device_kind = "cpu";
  }
  add_kernel_facts(*chosen, signals);
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
