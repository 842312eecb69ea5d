#include "unidle/trace/detail/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/base/printable.h"
#include "unidle/trace/detail/flops.h"
#include "unidle/trace/summary.h"

namespace unidle::trace::detail {

namespace {

constexpr double kLongHostEvent_us = 100;  // shorter ones cannot explain a gap worth showing
constexpr std::size_t kMostHostEvents = 2'000'000;
constexpr std::size_t kMostWorks = 20'000'000;  // of devices; some 50 bytes each
constexpr std::size_t kMostSteps = 1'000'000;
constexpr std::size_t kMostAtZero = 100'000;
constexpr std::size_t kMostDevices = 1000;
constexpr double kDay_us = 86400e6;
constexpr double kYear_us = 365 * kDay_us;

WorkKind kind_of(const TraceEvent& event) {
  if (is_kernel(event)) {
    return is_communication(event.name) ? WorkKind::kCommunication : WorkKind::kKernel;
  }
  return event.name.find("emset") != std::string::npos ? WorkKind::kFill : WorkKind::kCopy;
}

/// A device with unknown times writes 0, which lies years before all other events once a base is added.
bool has_no_time(const TraceEvent& event) {
  return (*event.begin_us == 0 && *event.duration_us == 0) || *event.begin_us < -kYear_us;
}

}  // namespace

std::uint32_t Texts::number(const std::string& text) {
  const auto [found, added] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (added) {
    texts_.push_back(text);
  }
  return found->second;
}

void Collector::event(const TraceEvent& event, const std::string& name) {
  if (!(*event.duration_us >= 0) || has_no_time(event)) {
    return;
  }
  if (*event.begin_us == 0 && at_zero_.size() < kMostAtZero) {
    at_zero_.push_back(event);
    return;
  }
  take(event, name);
}

void Collector::take(const TraceEvent& event, const std::string& name) {
  const double begin = *event.begin_us;
  const double end = begin + *event.duration_us;
  ++events;
  first = std::min(first, begin);
  last = std::max(last, end);
  if (is_kernel(event) || is_copy(event)) {
    work(event, begin, end, name);
  } else if (!is_device_side(event)) {
    host(event, begin, end);
  }
}

void Collector::finish() {
  // When all other events lie days later, zero means an unknown time.
  if (first < kDay_us || events == 0) {
    for (const TraceEvent& event : at_zero_) {
      take(event, {});
    }
  }
  for (auto& [number, thread] : threads) {
    std::sort(thread.captures_begin.begin(), thread.captures_begin.end());
    std::sort(thread.captures_end.begin(), thread.captures_end.end());
    auto end = thread.captures_end.begin();
    for (const double begin : thread.captures_begin) {
      end = std::lower_bound(end, thread.captures_end.end(), begin);
      if (end == thread.captures_end.end()) {
        break;
      }
      thread.of(HostWork::kCompile).add(to_range({begin, *end}));
    }
  }
}

void Collector::device(const TraceDevice& device) {
  if (!device.process.empty()) {
    if (unread_device.empty() && names_unread_device(device.process)) {
      unread_device = printable_line(device.process);
    }
    return;
  }
  if (listed.size() < kMostDevices) {
    listed.push_back(device);
  }
}

void Collector::work(const TraceEvent& event, double begin, double end, const std::string& name) {
  if (++works_ > kMostWorks) {
    throw Error(ErrorCode::kInput, name, fmt::format("holds more than {} kernels and copies", kMostWorks),
                "profile fewer steps");
  }
  Work work;
  work.begin = begin;
  work.end = end;
  work.bytes = event.bytes.value_or(0);
  work.correlation = event.correlation.value_or(-1);
  work.name = names.number(event.name);
  work.stream = thread_names_.number(event.thread);
  work.kind = kind_of(event);
  // Under "CUDA functions" the row names the device.
  devices[event.device.empty() && event.process == "CUDA functions" ? event.thread.substr(event.process.size() + 1)
                                                                    : event.device]
      .add(work);
}

void Collector::host(const TraceEvent& event, double begin, double end) {
  const std::uint32_t number = thread_names_.number(event.thread);
  if (event.name.starts_with("ProfilerStep#")) {
    if (steps.size() < kMostSteps) {
      steps.push_back({begin, end, number});
    }
    return;
  }
  if (event.name.starts_with(clock_mark())) {
    clock(event);
    return;
  }
  if (event.category == "Trace") {
    return;  // the profiler's own work
  }
  if (event.correlation) {
    calls.add({*event.correlation, begin, end, number, host_work_of(event).value_or(HostWork::kLaunch),
               is_driver_launch(event)});
  }
  part(event, threads[number], begin, end);
  if (event.category == "overhead") {
    return;
  }
  if (end - begin >= kLongHostEvent_us && long_host_events.size() < kMostHostEvents) {
    long_host_events.push_back({begin, end, names.number(event.name), 0});
  }
  python_frames = python_frames || is_python_frame(event);
  if (is_operator(event)) {
    if (has_flops(event.name)) {
      count_flops(event, begin, end, number);
    }
    if (operators.size() < kMostHostEvents) {
      operators.push_back({begin, end, names.number(event.name), number});
    } else {
      operators_whole = false;
    }
  }
}

void Collector::count_flops(const TraceEvent& event, double begin, double end, std::uint32_t thread) {
  if (arithmetic.size() < kMostHostEvents) {
    arithmetic.push_back({begin, end, flops_of(event), names.number(number_type(event)), thread});
  } else {
    arithmetic_whole = false;
  }
}

void Collector::part(const TraceEvent& event, HostThread& thread, double begin, double end) {
  const auto kind = host_work_of(event);
  if (kind) {
    thread.of(*kind).add(to_range({begin, end}));
  }
  if (is_operator(event) && event.name.starts_with("aten::")) {
    thread.torch_operators.add(to_range({begin, end}));
  }
  if (is_graph_launch(event) || begins_capture(event) || multiplies_sparse(event)) {
    if (uncounted.size() < kMostHostEvents) {
      uncounted.push_back(begin);
    } else {
      arithmetic_whole = false;
    }
  }
  if (event.name.starts_with("enumerate(DataLoader)")) {
    loader_in_process = event.name.find("_SingleProcess") != std::string::npos;
  } else if (event.name.starts_with("Optimizer.step")) {
    thread.optimizer.add(to_range({begin, end}));
  } else if (kind == HostWork::kSync) {
    ++thread.syncs;
  } else if (is_blocking_copy(event)) {
    thread.blocking_copies.add(to_range({begin, end}));
  } else if (kind == HostWork::kLaunch && event.category != "overhead") {
    ++launches;
    ++thread.launches;
    launch_us += end - begin;
    if (end - begin >= kLoadingLaunch_us) {
      thread.long_launches.add(to_range({begin, end}));
    }
  } else if (begins_capture(event)) {
    thread.captures_begin.push_back(begin);
  } else if (ends_capture(event)) {
    thread.captures_end.push_back(end);
  }
}

/// The time in the mark's name was read before the mark began: of several marks, the one with the least delay is best.
void Collector::clock(const TraceEvent& event) {
  const char* text = event.name.data() + clock_mark().size();
  const char* text_end = event.name.data() + event.name.size();
  std::int64_t ns = 0;
  const auto [end, error] = std::from_chars(text, text_end, ns);
  if (error != std::errc{} || end != text_end || std::abs(*event.begin_us) > 9e15) {
    return;
  }
  const std::int64_t begin_ns = std::llround(*event.begin_us * 1e3);
  std::int64_t zero = 0;
  if (!__builtin_sub_overflow(ns, begin_ns, &zero)) {
    zero_ns = std::max(zero, zero_ns.value_or(std::numeric_limits<std::int64_t>::min()));
  }
}

}  // namespace unidle::trace::detail
