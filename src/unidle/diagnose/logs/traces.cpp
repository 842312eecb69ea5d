// Steps and device use from profiler traces.
#include <algorithm>
#include <limits>
#include <map>

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
    signals.input_stated.clear();  // the trace has all parts of a step
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

/// For traces of different ranks: the time that a rank spends in exchange is waiting for others.
void add_ranks(const JobLogs& job, Signals& signals) {
  std::map<std::int64_t, const TraceSummary*> by_rank;
  for (const TraceSummary& trace : job.traces) {
    if (trace.rank && *trace.rank <= std::numeric_limits<int>::max() && trace.step_s) {
      by_rank.try_emplace(*trace.rank, &trace);
    }
  }
  if (by_rank.size() < 2 || by_rank.size() < job.traces.size() || !signals.ranks.empty()) {
    return;
  }
  for (const auto& [rank, trace] : by_rank) {
    const double steps = static_cast<double>(trace->step_s.count);
    signals.ranks.push_back({static_cast<int>(rank), trace->window_s / steps, trace->communication_alone_s / steps, 0});
  }
}

}  // namespace

void add_traces(const JobLogs& job, Signals& signals) {
  // Of several traces (one per rank), the one with the least busy device is the most informative.
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
    signals.device_kind = chosen->device_name.find("AMD") != std::string::npos ? "rocm" : "cuda";
    signals.gpus = std::max(signals.gpus.value_or(0), static_cast<int>(chosen->devices.size()));
    signals.device_busy = busy(*chosen);
    signals.device_busy_how = describe(*chosen, *device, job.language);
  } else if (!chosen->unread_device.empty()) {
    signals.device_busy_how =
        translate(job.language, "the work of \"{}\" has a form that is not read", chosen->unread_device);
  } else if (signals.device_kind == "unknown") {
    signals.device_kind = "cpu";
  }
  add_kernel_facts(*chosen, signals);
  add_flops(*chosen, signals);
  signals.flops_step_s = chosen->seconds_per_step();
  add_ranks(job, signals);
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
  // With a log beside it, the window represents the training part of the run.
  const bool alone = job.texts.empty() && job.gpus.empty();
  const double train = alone || signals.time.train <= 0 ? 1 : signals.time.train / signals.wall_s;
  signals.timeline = timeline_of(*chosen, train);
  if (signals.timeline) {
    signals.timeline->alone = alone;
  }
}

}  // namespace unidle::diagnose::detail
