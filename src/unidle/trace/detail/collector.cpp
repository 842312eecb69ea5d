#include "unidle/trace/detail/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace unidle::trace::detail {

namespace {

constexpr double kLongHostEvent_us = 100;  // shorter ones cannot explain a gap worth showing
constexpr std::size_t kMostHostEvents = 2'000'000;
constexpr std::size_t kMostKernelNames = 100'000;
constexpr std::size_t kMostCopyKinds = 1000;
constexpr std::size_t kMostSteps = 1'000'000;

/// Newer and older spellings of the profiler.
bool is_kernel(const std::string& category) { return category == "kernel" || category == "Kernel"; }
bool is_copy(const std::string& category) {
  return category == "gpu_memcpy" || category == "gpu_memset" || category == "Memcpy" || category == "Memset";
}
bool is_device_side(const std::string& category) { return category.starts_with("gpu_"); }
bool is_operator(const std::string& category) { return category == "cpu_op" || category == "Operator"; }

bool is_sync(const std::string& name) {
  return name.find("Synchronize") != std::string::npos &&
         (name.starts_with("cuda") || name.starts_with("cu") || name.starts_with("hip"));
}
bool is_copy_call(const std::string& name) {
  return name.starts_with("cudaMemcpy") || name.starts_with("hipMemcpy") || name.starts_with("cuMemcpy");
}
bool is_launch(const std::string& name) {
  return name.starts_with("cudaLaunch") || name.starts_with("cuLaunch") || name.starts_with("cudaGraphLaunch") ||
         name.starts_with("cuGraphLaunch") || name.starts_with("hipLaunch") || name.starts_with("hipExtLaunch") ||
         name.starts_with("hipExtModuleLaunch") || name.starts_with("hipModuleLaunch") ||
         name.starts_with("hipGraphLaunch");
}

}  // namespace

std::uint32_t Texts::number(const std::string& text) {
  const auto [found, added] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (added) {
    texts_.push_back(text);
  }
  return found->second;
}

void Collector::event(const TraceEvent& event) {
  const double begin = *event.begin_us;
  const double end = begin + *event.duration_us;
  if (!(end >= begin)) {
    return;
  }
  ++events;
  first = std::min(first, begin);
  last = std::max(last, end);
  if (is_kernel(event.category)) {
    busy[event.device].add(begin, end);
    computing.add(begin, end);
    kernel(event, end - begin);
  } else if (is_copy(event.category)) {
    busy[event.device].add(begin, end);
    copy(event, end - begin);
  } else if (!is_device_side(event.category)) {
    host(event, begin, end);
  }
}

void Collector::device(const TraceDevice& device) {
  if (device_name.empty()) {
    device_name = device.name;
    device_memory = device.memory;
    if (device.major && device.minor) {
      capability = fmt::format("{}.{}", *device.major, *device.minor);
    }
  }
}

void Collector::kernel(const TraceEvent& event, double duration) {
  ++kernel_count;
  kernel_us += duration;
  auto found = kernels.find(event.name);
  if (found == kernels.end()) {
    if (kernels.size() >= kMostKernelNames) {
      matrix_us += uses_matrix_units(event.name) ? duration : 0;
      return;
    }
    found = kernels.emplace(event.name, KernelUse{event.name, 0, 0, uses_matrix_units(event.name)}).first;
  }
  ++found->second.count;
  found->second.total_s += duration * kSecondsPerUs;
  matrix_us += found->second.matrix_units ? duration : 0;
}

void Collector::copy(const TraceEvent& event, double duration) {
  const std::string kind = event.name.starts_with("Memcpy ") ? event.name.substr(7) : event.name;
  if (!copies.contains(kind) && copies.size() >= kMostCopyKinds) {
    return;
  }
  CopyUse& use = copies[kind];
  use.kind = kind;
  ++use.count;
  use.total_s += duration * kSecondsPerUs;
  use.bytes += event.bytes.value_or(0);
}

void Collector::host(const TraceEvent& event, double begin, double end) {
  if (event.name.starts_with("ProfilerStep#")) {
    if (steps.size() < kMostSteps) {
      steps.push_back({begin, end, event.thread});
    }
    return;
  }
  if (event.name.starts_with(clock_mark())) {
    clock(event);
    return;
  }
  if (event.category == "Trace" || event.category == "overhead") {
    return;  // the profiler's own
  }
  part(event, begin, end);
  if (end - begin >= kLongHostEvent_us && long_host_events.size() < kMostHostEvents) {
    long_host_events.push_back({begin, end, names.number(event.name), 0});
  }
  if (is_operator(event.category)) {
    if (operators.size() < kMostHostEvents) {
      operators.push_back({begin, end, names.number(event.name), thread_names_.number(event.thread)});
    } else {
      operators_whole = false;
    }
  }
}

void Collector::part(const TraceEvent& event, double begin, double end) {
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
  } else if (is_launch(event.name)) {
    ++launches;
    launch_us += end - begin;
  }
}

/// The time in the mark's name was taken before the mark began: of several, the one with the least delay is right.
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
