#include "unidle/trace/summary.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/trace/detail/collector.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/detail/spans.h"

namespace unidle::trace {

namespace {

using detail::Collector;
using detail::HostEvent;
using detail::SpanSet;
using detail::Step;
using detail::TraceEvent;

constexpr std::size_t kGapsShown = 5;
constexpr std::size_t kRowsShown = 10;

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
  return best == nullptr ? "" : seen.names[best->name];
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
    summary.gaps.push_back({(gap.begin - window.begin) * detail::kSecondsPerUs,
                            (gap.end - gap.begin) * detail::kSecondsPerUs, host_during(seen, gap)});
  }
}

void add_devices(Collector& seen, const detail::Span& window, TraceSummary& summary) {
  for (auto& [id, spans] : seen.busy) {
    summary.devices.push_back({id.empty() ? "0" : id, spans.covered(window.begin, window.end) * detail::kSecondsPerUs});
  }
  if (const DeviceUse* busiest = summary.busiest()) {
    const auto at = static_cast<std::ptrdiff_t>(busiest - summary.devices.data());
    add_gaps(seen, window, std::next(seen.busy.begin(), at)->first, summary);
  }
}

/// The rows that take most time, in that order.
template <typename Row>
void keep_longest(std::vector<Row>& rows, double Row::*seconds, std::string Row::*name) {
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return a.*seconds != b.*seconds ? a.*seconds > b.*seconds : a.*name < b.*name;
  });
  rows.resize(std::min(kRowsShown, rows.size()));
}

void add_kernels(const Collector& seen, TraceSummary& summary) {
  for (const auto& [name, use] : seen.kernels) {
    summary.kernels.push_back(use);
  }
  keep_longest(summary.kernels, &KernelUse::total_s, &KernelUse::name);
  summary.kernel_count = seen.kernel_count;
  summary.kernel_s = seen.kernel_us * detail::kSecondsPerUs;
  summary.matrix_s = seen.matrix_us * detail::kSecondsPerUs;
  summary.launches = seen.launches;
  summary.launch_s = seen.launch_us * detail::kSecondsPerUs;
  for (const auto& [kind, use] : seen.copies) {
    summary.copies.push_back(use);
  }
  keep_longest(summary.copies, &CopyUse::total_s, &CopyUse::kind);
}

/// Operators call one another: each gets what its own time is less that of those inside it.
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

/// Parts nest (a copy inside an optimiser step): each moment counts for the first of input, sync, transfer, optimizer.
void add_steps(Collector& seen, TraceSummary& summary) {
  if (seen.steps.empty()) {
    return;
  }
  const std::string& thread = seen.steps.front().thread;
  SpanSet steps;
  for (const Step& step : seen.steps) {
    summary.step_s.add((step.end - step.begin) * detail::kSecondsPerUs);
    if (step.thread == thread) {
      steps.add(step.begin, step.end);
    }
  }
  const double whole = steps.total();
  if (whole <= 0) {
    return;
  }
  detail::HostThread& host = seen.threads[thread];
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
  // A copy call that returns only when the kernels before it are done waits for them.
  SpanSet waiting = host.transfer.within(seen.computing);
  parts.sync = take(host.sync) + take(waiting);
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
  summary.span_s = (seen.last - seen.first) * detail::kSecondsPerUs;
  const detail::Span window = window_of(seen);
  summary.begin_us = window.begin;
  summary.window_s = (window.end - window.begin) * detail::kSecondsPerUs;
  add_devices(seen, window, summary);
  add_kernels(seen, summary);
  add_operators(seen, summary);
  add_steps(seen, summary);
  summary.zero_ns = seen.zero_ns;
  summary.loader_in_process = seen.loader_in_process;
  summary.device_name = seen.device_name;
  summary.capability = seen.capability;
  summary.device_memory = seen.device_memory;
  return summary;
}

}  // namespace unidle::trace
