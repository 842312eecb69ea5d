// What a summary is made of, gathered event by event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "unidle/trace/detail/events.h"
#include "unidle/trace/detail/spans.h"
#include "unidle/trace/summary.h"

namespace unidle::trace::detail {

/// Something on the host; times in microseconds, `name` and `thread` by number.
struct HostEvent {
  double begin = 0;
  double end = 0;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
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

/// Texts by number, in the order in which they were first seen.
class Texts {
 public:
  std::uint32_t number(const std::string& text);
  const std::string& operator[](std::uint32_t number) const { return texts_[number]; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// Not thread-safe. Every list has a bound; what lies beyond is left out.
class Collector {
 public:
  void event(const TraceEvent& event);
  void device(const TraceDevice& device);

  std::int64_t events = 0;
  double first = 1e300;
  double last = -1e300;
  std::map<std::string, SpanSet> busy;
  SpanSet computing;  // kernels of all devices
  std::unordered_map<std::string, KernelUse> kernels;
  std::map<std::string, CopyUse> copies;
  std::int64_t kernel_count = 0;
  double kernel_us = 0;
  double matrix_us = 0;
  std::int64_t launches = 0;
  double launch_us = 0;
  std::vector<Step> steps;
  std::map<std::string, HostThread> threads;
  std::vector<HostEvent> long_host_events;
  std::vector<HostEvent> operators;
  bool operators_whole = true;
  Texts names;
  std::optional<std::int64_t> zero_ns;
  std::optional<bool> loader_in_process;
  std::string device_name;
  std::optional<std::string> capability;
  std::optional<double> device_memory;

 private:
  void kernel(const TraceEvent& event, double duration);
  void copy(const TraceEvent& event, double duration);
  void host(const TraceEvent& event, double begin, double end);
  void part(const TraceEvent& event, double begin, double end);
  void clock(const TraceEvent& event);

  Texts thread_names_;
};

}  // namespace unidle::trace::detail
