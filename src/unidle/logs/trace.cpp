#include "unidle/logs/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "unidle/base/error.h"
#include "unidle/logs/detail/spans.h"
#include "unidle/logs/detail/trace_events.h"

namespace unidle::logs {

namespace {

using detail::SpanSet;
using detail::TraceEvent;

constexpr double kSecond = 1e-6;           // of a microsecond
constexpr double kLongHostEvent_us = 100;  // shorter ones cannot explain a gap worth showing
constexpr std::size_t kMostHostEvents = 2'000'000;
constexpr std::size_t kMostKernelNames = 100'000;
constexpr std::size_t kMostSteps = 1'000'000;
constexpr std::size_t kGapsShown = 5;
constexpr std::size_t kKernelsShown = 10;

/// Newer and older spellings of the profiler.
bool is_device_work(const std::string& category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" || category == "Kernel" ||
         category == "Memcpy" || category == "Memset";
}
bool is_kernel(const std::string& category) { return category == "kernel" || category == "Kernel"; }
bool is_device_side(const std::string& category) { return category.starts_with("gpu_"); }

bool is_sync(const std::string& name) {
  return name.find("Synchronize") != std::string::npos &&
         (name.starts_with("cuda") || name.starts_with("cu") || name.starts_with("hip"));
}
bool is_copy_call(const std::string& name) {
  return name.starts_with("cudaMemcpy") || name.starts_with("hipMemcpy") || name.starts_with("cuMemcpy");
}

struct HostEvent {
  double begin = 0;
  double end = 0;
  std::uint32_t name = 0;
};

struct Step {
  double begin = 0;
  double end = 0;
  std::string thread;
};

/// What one thread did, by the parts of a step.
struct HostThread {
  SpanSet input;
  SpanSet sync;
  SpanSet transfer;
  SpanSet optimizer;
  std::int64_t syncs = 0;
};

class Collector {
 public:
  void event(const TraceEvent& event) {
    const double begin = *event.begin_us;
    const double end = begin + *event.duration_us;
    if (!(end >= begin)) {
      return;
    }
    ++events;
    first = std::min(first, begin);
    last = std::max(last, end);
    if (is_device_work(event.category)) {
      busy[event.device].add(begin, end);
      if (is_kernel(event.category)) {
        kernel(event, end - begin);
      }
    } else if (!is_device_side(event.category)) {
      host(event, begin, end);
    }
  }

  void device(const detail::TraceDevice& device) {
    if (device_name.empty()) {
      device_name = device.name;
      device_memory = device.memory;
      if (device.major && device.minor) {
        capability = fmt::format("{}.{}", *device.major, *device.minor);
      }
    }
  }

  std::int64_t events = 0;
  double first = 1e300;
  double last = -1e300;
  std::map<std::string, SpanSet> busy;
  std::unordered_map<std::string, KernelUse> kernels;
  std::int64_t kernel_count = 0;
  double kernel_us = 0;
  std::vector<Step> steps;
  std::map<std::string, HostThread> threads;
  std::vector<HostEvent> long_host_events;
  std::vector<std::string> host_names;
  std::optional<bool> loader_in_process;
  std::string device_name;
  std::optional<std::string> capability;
  std::optional<double> device_memory;

 private:
  void kernel(const TraceEvent& event, double duration) {
    ++kernel_count;
    kernel_us += duration;
    auto found = kernels.find(event.name);
    if (found == kernels.end()) {
      if (kernels.size() >= kMostKernelNames) {
        return;
      }
      found = kernels.emplace(event.name, KernelUse{event.name, 0, 0}).first;
    }
    ++found->second.count;
    found->second.total_s += duration * kSecond;
  }

  void host(const TraceEvent& event, double begin, double end) {
    if (event.name.starts_with("ProfilerStep#")) {
      if (steps.size() < kMostSteps) {
        steps.push_back({begin, end, event.thread});
      }
      return;
    }
    if (event.name.starts_with("enumerate(DataLoader)")) {
      threads[event.thread].input.add(begin, end);
      loader_in_process = event.name.find("_SingleProcess") != std::string::npos;
    } else if (event.name.starts_with("Optimizer.step")) {
      threads[event.thread].optimizer.add(begin, end);
    } else if (is_sync(event.name)) {
      threads[event.thread].sync.add(begin, end);
      ++threads[event.thread].syncs;
    } else if (is_copy_call(event.name)) {
      threads[event.thread].transfer.add(begin, end);
    }
    if (end - begin >= kLongHostEvent_us && long_host_events.size() < kMostHostEvents) {
      long_host_events.push_back({begin, end, name_id(event.name)});
    }
  }

  std::uint32_t name_id(const std::string& name) {
    const auto [found, added] = name_ids_.try_emplace(name, static_cast<std::uint32_t>(host_names.size()));
    if (added) {
      host_names.push_back(name);
    }
    return found->second;
  }

  std::unordered_map<std::string, std::uint32_t> name_ids_;
};

/// From the first step to the last; where none is marked, from the device's first work to its last.
detail::Span window_of(Collector& seen) {
  detail::Span window{1e300, -1e300};
  for (const Step& step : seen.steps) {
    window.begin = std::min(window.begin, step.begin);
    window.end = std::max(window.end, step.end);
  }
  if (seen.steps.empty()) {
    for (auto& [id, spans] : seen.busy) {
      if (!spans.empty()) {
        window.begin = std::min(window.begin, spans.joined().front().begin);
        window.end = std::max(window.end, spans.joined().back().end);
      }
    }
  }
  return window.end > window.begin ? window : detail::Span{seen.first, std::max(seen.first, seen.last)};
}

std::string host_during(const Collector& seen, const detail::Span& gap) {
  const HostEvent* best = nullptr;
  for (const HostEvent& event : seen.long_host_events) {
    const double overlap = std::min(event.end, gap.end) - std::max(event.begin, gap.begin);
    if (overlap * 2 < gap.end - gap.begin) {
      continue;
    }
    if (best == nullptr || event.end - event.begin < best->end - best->begin) {
      best = &event;
    }
  }
  return best == nullptr ? "" : seen.host_names[best->name];
}

void add_gaps(Collector& seen, const detail::Span& window, const std::string& device, TraceSummary& summary) {
  SpanSet whole;
  whole.add(window.begin, window.end);
  SpanSet idle = whole.minus(seen.busy.at(device));
  std::vector<detail::Span> gaps = idle.joined();
  const std::size_t shown = std::min(kGapsShown, gaps.size());
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(shown), gaps.end(),
                    [](const detail::Span& a, const detail::Span& b) { return a.end - a.begin > b.end - b.begin; });
  gaps.resize(shown);
  for (const detail::Span& gap : gaps) {
    summary.gaps.push_back(
        {(gap.begin - window.begin) * kSecond, (gap.end - gap.begin) * kSecond, host_during(seen, gap)});
  }
}

void add_devices(Collector& seen, const detail::Span& window, TraceSummary& summary) {
  for (auto& [id, spans] : seen.busy) {
    summary.devices.push_back({id.empty() ? "0" : id, spans.covered(window.begin, window.end) * kSecond});
  }
  if (const DeviceUse* busiest = summary.busiest()) {
    const auto at = static_cast<std::ptrdiff_t>(busiest - summary.devices.data());
    add_gaps(seen, window, std::next(seen.busy.begin(), at)->first, summary);
  }
}

void add_kernels(const Collector& seen, TraceSummary& summary) {
  for (const auto& [name, use] : seen.kernels) {
    summary.kernels.push_back(use);
  }
  std::sort(summary.kernels.begin(), summary.kernels.end(), [](const KernelUse& a, const KernelUse& b) {
    return a.total_s != b.total_s ? a.total_s > b.total_s : a.name < b.name;
  });
  summary.kernels.resize(std::min(kKernelsShown, summary.kernels.size()));
  summary.kernel_count = seen.kernel_count;
  summary.kernel_s = seen.kernel_us * kSecond;
}

/// Parts nest (a copy inside an optimiser step): each moment counts for the first of input, sync, transfer, optimizer.
void add_steps(Collector& seen, TraceSummary& summary) {
  if (seen.steps.empty()) {
    return;
  }
  const std::string& thread = seen.steps.front().thread;
  SpanSet steps;
  for (const Step& step : seen.steps) {
    summary.step_s.add((step.end - step.begin) * kSecond);
    if (step.thread == thread) {
      steps.add(step.begin, step.end);
    }
  }
  const double whole = steps.total();
  if (whole <= 0) {
    return;
  }
  HostThread& host = seen.threads[thread];
  const auto take = [&](SpanSet& part) {
    SpanSet inside = part.within(steps);
    steps = steps.minus(inside);
    return inside.total() / whole;
  };
  if (!seen.busy.empty()) {
    summary.syncs_per_step = static_cast<double>(host.syncs) / static_cast<double>(summary.step_s.count);
  }
  StepParts parts;
  parts.input = take(host.input);
  parts.sync = take(host.sync);
  parts.transfer = take(host.transfer);
  parts.optimizer = take(host.optimizer);
  parts.rest = steps.total() / whole;
  summary.parts = parts;
}

}  // namespace

const DeviceUse* TraceSummary::busiest() const {
  const auto most = std::max_element(devices.begin(), devices.end(),
                                     [](const DeviceUse& a, const DeviceUse& b) { return a.busy_s < b.busy_s; });
  return most == devices.end() ? nullptr : &*most;
}

TraceSummary read_trace(Source& source) {
  Collector seen;
  detail::for_each_event(
      source, [&](const TraceEvent& event) { seen.event(event); },
      [&](const detail::TraceDevice& device) { seen.device(device); });
  if (seen.events == 0) {
    throw Error(ErrorCode::kInput, source.name(), "the trace holds no timed event",
                "a torch profiler trace (Chrome JSON) was expected");
  }
  TraceSummary summary;
  summary.file = source.name();
  summary.events = seen.events;
  summary.span_s = (seen.last - seen.first) * kSecond;
  const detail::Span window = window_of(seen);
  summary.begin_us = window.begin;
  summary.window_s = (window.end - window.begin) * kSecond;
  add_devices(seen, window, summary);
  add_kernels(seen, summary);
  add_steps(seen, summary);
  summary.loader_in_process = seen.loader_in_process;
  summary.device_name = seen.device_name;
  summary.capability = seen.capability;
  summary.device_memory = seen.device_memory;
  return summary;
}

}  // namespace unidle::logs
