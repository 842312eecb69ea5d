#include "unidle/trace/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/trace/detail/arithmetic.h"
#include "unidle/trace/detail/collector.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/detail/idle.h"
#include "unidle/trace/detail/ranges.h"

namespace unidle::trace {

namespace {

using detail::Collector;
using detail::GatheredRanges;
using detail::HostEvent;
using detail::HostWork;
using detail::Step;
using detail::TraceEvent;
using detail::Work;
using detail::WorkKind;

constexpr std::size_t kGapsShown = 5;
constexpr std::size_t kRowsShown = 10;

/// The end of the device work that was launched before `end`: the host runs ahead of the device.
double end_of_launched(Collector& seen, const detail::Span& steps) {
  double last = steps.end;
  for (auto& [id, device] : seen.devices) {
    for (const Work& work : device.ordered()) {
      const detail::Call* call = work.end > last ? seen.calls.find(work.correlation) : nullptr;
      last = call != nullptr && call->begin >= steps.begin && call->begin < steps.end ? work.end : last;
    }
  }
  return last;
}

/// From the first step to the last and the end of the work it launched; without marked steps, from the device's first
/// work to its last.
detail::Span window_of(Collector& seen) {
  detail::Span window{1e300, -1e300};
  for (const Step& step : seen.steps) {
    window.begin = std::min(window.begin, step.begin);
    window.end = std::max(window.end, step.end);
  }
  if (!seen.steps.empty()) {
    window.end = end_of_launched(seen, window);
  } else {
    for (auto& [id, device] : seen.devices) {
      for (const Work& work : device.ordered()) {
        window.begin = std::min(window.begin, work.begin);
        window.end = std::max(window.end, work.end);
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
  return best == nullptr ? "" : seen.names[best->name];
}

void add_gaps(Collector& seen, const detail::Span& window, const TimeRanges& busy, TraceSummary& summary) {
  std::vector<TimeRange> gaps = TimeRanges({detail::to_range(window)}).minus(busy).all();
  const std::size_t shown = std::min(kGapsShown, gaps.size());
  std::partial_sort(
      gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(shown), gaps.end(),
      [](const TimeRange& a, const TimeRange& b) { return a.end_ns - a.begin_ns > b.end_ns - b.begin_ns; });
  gaps.resize(shown);
  for (const TimeRange& range : gaps) {
    const detail::Span gap = detail::to_span(range);
    summary.gaps.push_back({(gap.begin - window.begin) * detail::kSecondsPerUs,
                            (gap.end - gap.begin) * detail::kSecondsPerUs, host_during(seen, gap)});
  }
}

/// The work of one device by kind.
struct Busy {
  GatheredRanges all;
  GatheredRanges kernels;  // except those that communicate
  GatheredRanges communication;
  GatheredRanges copies;
};

Busy busy_of(detail::DeviceWork& device) {
  Busy busy;
  for (const Work& work : device.ordered()) {
    const TimeRange range = detail::to_range({work.begin, work.end});
    busy.all.add(range);
    if (work.kind != WorkKind::kFill) {
      GatheredRanges& kind = work.kind == WorkKind::kKernel          ? busy.kernels
                             : work.kind == WorkKind::kCommunication ? busy.communication
                                                                     : busy.copies;
      kind.add(range);
    }
  }
  return busy;
}

double seconds_in(const detail::Span& window, const TimeRanges& ranges) {
  const auto [begin_ns, end_ns] = detail::to_range(window);
  return detail::to_us(ranges.overlap_ns(begin_ns, end_ns)) * detail::kSecondsPerUs;
}

/// Adds the communication and the copies that no kernel overlaps.
void add_alone(Busy& busy, const detail::Span& window, TraceSummary& summary) {
  const TimeRanges& kernels = busy.kernels.joined();
  const TimeRanges& communication = busy.communication.joined();
  const TimeRanges& copies = busy.copies.joined();
  summary.communication_s = seconds_in(window, communication);
  summary.communication_alone_s = seconds_in(window, communication.minus(kernels));
  summary.copying_s = seconds_in(window, copies);
  summary.copying_alone_s = seconds_in(window, copies.minus(kernels).minus(communication));
}

void add_devices(Collector& seen, const detail::Span& window, TraceSummary& summary) {
  std::map<std::string, Busy> busy;
  for (auto& [id, device] : seen.devices) {
    GatheredRanges& all = busy.try_emplace(id, busy_of(device)).first->second.all;
    summary.devices.push_back({id.empty() ? "0" : id, seconds_in(window, all.joined())});
  }
  if (const DeviceUse* busiest = summary.busiest()) {
    auto& [id, chosen] = *std::next(busy.begin(), busiest - summary.devices.data());
    add_gaps(seen, window, chosen.all.joined(), summary);
    add_alone(chosen, window, summary);
    summary.idle = detail::idle_time(seen, id, chosen.all.joined(), window);
  }
}

/// The rows that take the most time, longest first.
template <typename Row>
void keep_longest(std::vector<Row>& rows, double Row::*seconds, std::string Row::*name) {
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return a.*seconds != b.*seconds ? a.*seconds > b.*seconds : a.*name < b.*name;
  });
  rows.resize(std::min(kRowsShown, rows.size()));
}

struct Uses {
  std::unordered_map<std::uint32_t, KernelUse> kernels;
  std::map<std::string, CopyUse> copies;
};

void add_kernel(const Collector& seen, const Work& work, TraceSummary& summary, Uses& uses) {
  const double seconds = (work.end - work.begin) * detail::kSecondsPerUs;
  const auto [use, added] = uses.kernels.try_emplace(work.name);
  if (added) {
    use->second.name = seen.names[work.name];
    use->second.matrix_units = uses_matrix_units(use->second.name);
  }
  ++use->second.count;
  use->second.total_s += seconds;
  ++summary.kernel_count;
  summary.kernel_s += seconds;
  summary.matrix_s += use->second.matrix_units ? seconds : 0;
}

void add_copy(const Collector& seen, const Work& work, Uses& uses) {
  const std::string& name = seen.names[work.name];
  const std::string kind = name.starts_with("Memcpy ") ? name.substr(7) : name;
  CopyUse& use = uses.copies[kind];
  use.kind = kind;
  ++use.count;
  use.total_s += (work.end - work.begin) * detail::kSecondsPerUs;
  use.bytes += work.bytes;
}

void add_kernels(Collector& seen, TraceSummary& summary) {
  Uses uses;
  for (auto& [id, device] : seen.devices) {
    for (const Work& work : device.ordered()) {
      if (work.kind == WorkKind::kKernel || work.kind == WorkKind::kCommunication) {
        add_kernel(seen, work, summary, uses);
      } else {
        add_copy(seen, work, uses);
      }
    }
  }
  for (auto& [number, use] : uses.kernels) {
    summary.kernels.push_back(std::move(use));
  }
  keep_longest(summary.kernels, &KernelUse::total_s, &KernelUse::name);
  for (auto& [kind, use] : uses.copies) {
    summary.copies.push_back(std::move(use));
  }
  keep_longest(summary.copies, &CopyUse::total_s, &CopyUse::kind);
  summary.launches = seen.launches;
  summary.launch_s = seen.launch_us * detail::kSecondsPerUs;
}

/// Operators nest: each gets its own time without that of the operators inside it.
void add_operators(Collector& seen, TraceSummary& summary) {
  if (!seen.operators_whole) {
    return;
  }
  std::sort(seen.operators.begin(), seen.operators.end(), [](const HostEvent& a, const HostEvent& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
  std::unordered_map<std::uint32_t, OperatorUse> uses;
  std::vector<const HostEvent*> around;
  for (const HostEvent& event : seen.operators) {
    while (!around.empty() && (around.back()->thread != event.thread || around.back()->end <= event.begin)) {
      around.pop_back();
    }
    OperatorUse& use = uses[event.name];
    ++use.count;
    use.self_s += (event.end - event.begin) * detail::kSecondsPerUs;
    if (!around.empty()) {
      uses[around.back()->name].self_s -=
          (std::min(event.end, around.back()->end) - event.begin) * detail::kSecondsPerUs;
    }
    around.push_back(&event);
  }
  for (auto& [number, use] : uses) {
    use.name = seen.names[number];
    summary.operators.push_back(std::move(use));
  }
  keep_longest(summary.operators, &OperatorUse::self_s, &OperatorUse::name);
}

/// Work is counted where the host calls it, in the steps if they are marked.
void add_flops(Collector& seen, TraceSummary& summary) {
  detail::Span steps{-1e300, 1e300};
  if (!seen.steps.empty()) {
    steps = {1e300, -1e300};
    for (const Step& step : seen.steps) {
      steps.begin = std::min(steps.begin, step.begin);
      steps.end = std::max(steps.end, step.end);
    }
  }
  summary.flops = detail::flops_within(seen, steps);
}

/// What the trace says of the device that worked most: by its id, or because it is the only one.
void name_device(const Collector& seen, TraceSummary& summary) {
  const DeviceUse* busiest = summary.busiest();
  const detail::TraceDevice* named = seen.listed.empty() ? nullptr : &seen.listed.front();
  if (busiest != nullptr && seen.listed.size() > 1) {
    const auto found = std::ranges::find(seen.listed, busiest->id, &detail::TraceDevice::id);
    named = found == seen.listed.end() ? nullptr : &*found;
  }
  if (named != nullptr) {
    summary.device_name = named->name;
    summary.device_memory = named->memory;
    if (named->major && named->minor) {
      summary.capability = fmt::format("{}.{}", *named->major, *named->minor);
    }
  }
}

TimeRanges all_kernels(Collector& seen) {
  GatheredRanges kernels;
  for (auto& [id, device] : seen.devices) {
    for (const Work& work : device.ordered()) {
      if (work.kind == WorkKind::kKernel || work.kind == WorkKind::kCommunication) {
        kernels.add(detail::to_range({work.begin, work.end}));
      }
    }
  }
  return kernels.joined();
}

/// Parts nest (a copy inside an optimiser step): each moment counts for the first of input, sync, transfer, optimizer.
void add_steps(Collector& seen, TraceSummary& summary) {
  if (seen.steps.empty()) {
    return;
  }
  const std::uint32_t thread = seen.steps.front().thread;
  GatheredRanges of_thread;
  for (const Step& step : seen.steps) {
    summary.step_s.add((step.end - step.begin) * detail::kSecondsPerUs);
    if (step.thread == thread) {
      of_thread.add(detail::to_range({step.begin, step.end}));
    }
  }
  TimeRanges steps = of_thread.joined();
  const double whole = detail::total_us(steps);
  if (whole <= 0) {
    return;
  }
  detail::HostThread& host = seen.threads[thread];
  const auto take = [&](const TimeRanges& part) {
    const TimeRanges inside = detail::intersection(part, steps);
    steps = steps.minus(inside);
    return detail::total_us(inside) / whole;
  };
  if (!seen.devices.empty()) {
    summary.syncs_per_step = static_cast<double>(host.syncs) / static_cast<double>(summary.step_s.count);
  }
  StepParts parts;
  parts.input = take(host.of(HostWork::kInput).joined());
  // A copy call that returns only when the kernels before it are done counts as waiting for them.
  const TimeRanges waiting = detail::intersection(host.of(HostWork::kCopy).joined(), all_kernels(seen));
  parts.sync = take(host.of(HostWork::kSync).joined()) + take(waiting);
  parts.transfer = take(host.of(HostWork::kCopy).joined());
  parts.optimizer = take(host.optimizer.joined());
  parts.rest = detail::total_us(steps) / whole;
  summary.parts = parts;
}

}  // namespace

std::vector<IdleCause> causes_of(const IdleTime& idle) {
  std::vector<IdleCause> causes = {
      {"input", idle.input_s},
      {"compiling and loading kernels", idle.compile_s},
      {"allocator", idle.allocator_s},
      {"host waits", idle.sync_s},
      {"copy calls", idle.copy_s},
      {"launching", idle.launch_s},
      {"other host work", idle.host_s - idle.unnamed_s},
      {"host not recorded", idle.unnamed_s},
      {"profiler", idle.profiler_s},
      {"work was queued", idle.queued_s},
      {"not seen", idle.unseen_s},
  };
  std::erase_if(causes, [](const IdleCause& cause) { return cause.seconds <= 0; });
  std::stable_sort(causes.begin(), causes.end(),
                   [](const IdleCause& a, const IdleCause& b) { return a.seconds > b.seconds; });
  return causes;
}

const DeviceUse* TraceSummary::busiest() const {
  const auto most = std::max_element(devices.begin(), devices.end(),
                                     [](const DeviceUse& a, const DeviceUse& b) { return a.busy_s < b.busy_s; });
  return most == devices.end() ? nullptr : &*most;
}

std::optional<double> TraceSummary::busy() const {
  const DeviceUse* device = busiest();
  if (device == nullptr || window_s <= 0) {
    return std::nullopt;
  }
  return std::clamp(device->busy_s / window_s, 0.0, 1.0);
}

std::optional<double> TraceSummary::matrix_share() const {
  return kernel_s > 0 ? std::optional(matrix_s / kernel_s) : std::nullopt;
}

TraceSummary read_trace(logs::Source& source) {
  Collector seen;
  TraceSummary summary;
  summary.rank = detail::for_each_event(
      source, [&](const TraceEvent& event) { seen.event(event, source.name()); },
      [&](const detail::TraceDevice& device) { seen.device(device); });
  seen.finish();
  if (seen.events == 0) {
    throw Error(ErrorCode::kInput, source.name(), "the trace holds no timed event",
                "a torch profiler trace (Chrome JSON) was expected");
  }
  if (seen.devices.empty() && !seen.unread_device.empty()) {
    if (seen.operators.empty()) {
      throw Error(ErrorCode::kInput, source.name(),
                  fmt::format("has the work of \"{}\" in a form that is not read", seen.unread_device),
                  "a torch profiler trace with kernels of NVIDIA's, AMD's or Intel's GPUs was expected");
    }
    summary.unread_device = seen.unread_device;
  }
  summary.file = source.name();
  summary.events = seen.events;
  summary.span_s = (seen.last - seen.first) * detail::kSecondsPerUs;
  const detail::Span window = window_of(seen);
  summary.begin_us = window.begin;
  summary.window_s = (window.end - window.begin) * detail::kSecondsPerUs;
  add_devices(seen, window, summary);
  add_kernels(seen, summary);
  add_operators(seen, summary);
  add_flops(seen, summary);
  add_steps(seen, summary);
  summary.zero_ns = seen.zero_ns;
  summary.python_frames = seen.python_frames;
  summary.loader_in_process = seen.loader_in_process;
  name_device(seen, summary);
  return summary;
}

}  // namespace unidle::trace
