// What a summary is made of, gathered event by event.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "unidle/trace/detail/device_work.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/detail/host_work.h"
#include "unidle/trace/detail/spans.h"

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
  std::uint32_t thread = 0;
};

/// What one thread did.
struct HostThread {
  std::array<SpanSet, kHostWorks> work;
  SpanSet optimizer;
  SpanSet blocking_copies;
  std::int64_t syncs = 0;
  std::int64_t launches = 0;
  std::vector<double> captures_begin;
  std::vector<double> captures_end;

  SpanSet& of(HostWork kind) { return work.at(static_cast<std::size_t>(kind)); }
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

/// Not thread-safe. Every list has a bound; what lies beyond is left out, but for the devices' work.
class Collector {
 public:
  /// Throws kInput (subject: `name`) for more work of devices than memory is kept for.
  void event(const TraceEvent& event, const std::string& name);
  void device(const TraceDevice& device);
  /// REQUIRES: all events were taken, and this is called once.
  void finish();

  std::int64_t events = 0;
  double first = 1e300;
  double last = -1e300;
  std::map<std::string, DeviceWork> devices;
  Calls calls;
  std::int64_t launches = 0;
  double launch_us = 0;
  std::vector<Step> steps;
  std::map<std::uint32_t, HostThread> threads;
  std::vector<HostEvent> long_host_events;
  std::vector<HostEvent> operators;
  bool operators_whole = true;
  bool python_frames = false;
  Texts names;
  std::optional<std::int64_t> zero_ns;
  std::optional<bool> loader_in_process;
  std::string device_name;
  std::optional<std::string> capability;
  std::optional<double> device_memory;

 private:
  void take(const TraceEvent& event, const std::string& name);
  void work(const TraceEvent& event, double begin, double end, const std::string& name);
  void host(const TraceEvent& event, double begin, double end);
  void part(const TraceEvent& event, HostThread& thread, double begin, double end);
  void clock(const TraceEvent& event);

  Texts thread_names_;
  std::size_t works_ = 0;
  std::vector<TraceEvent> at_zero_;  // held back until it is known where the others lie
};

}  // namespace unidle::trace::detail
