// Gathers, event by event, what a summary is made of.
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
#include "unidle/trace/detail/ranges.h"

namespace unidle::trace::detail {

/// An event on the host; times in microseconds, `name` and `thread` are indices of texts.
struct HostEvent {
  double begin = 0;
  double end = 0;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
};

/// An operator whose floating-point operations may be known; `type` and `thread` are indices of texts.
struct Arithmetic {
  double begin = 0;
  double end = 0;
  std::optional<double> flops;  // nothing when the call cannot be counted
  std::uint32_t type = 0;
  std::uint32_t thread = 0;
  bool launched = false;  // work of a device
};

struct Step {
  double begin = 0;
  double end = 0;
  std::uint32_t thread = 0;
};

/// A launch that takes this long while the device idles loads its kernel first. Own choice.
constexpr double kLoadingLaunch_us = 1000;

/// The events of one thread.
struct HostThread {
  std::array<GatheredRanges, kHostWorks> work;
  GatheredRanges optimizer;
  GatheredRanges blocking_copies;
  GatheredRanges long_launches;
  GatheredRanges torch_operators;  // torch's own: aten
  std::int64_t syncs = 0;
  std::int64_t launches = 0;
  std::vector<double> captures_begin;
  std::vector<double> captures_end;

  GatheredRanges& of(HostWork kind) { return work.at(static_cast<std::size_t>(kind)); }
};

/// Interned texts, numbered in the order in which they were first seen.
class Texts {
 public:
  std::uint32_t number(const std::string& text);
  const std::string& operator[](std::uint32_t number) const { return texts_[number]; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// Not thread-safe. Every list is bounded, and what exceeds the bound is dropped; only too much device work is an
/// error.
class Collector {
 public:
  /// Throws kInput (subject: `name`) when the devices' work exceeds the bound.
  void event(const TraceEvent& event, const std::string& name);
  void device(const TraceDevice& device);
  /// REQUIRES: all events were passed in; call this once.
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
  std::vector<Arithmetic> arithmetic;
  bool arithmetic_whole = true;
  std::vector<double> uncounted;  // begins of graphs' captures and launches, and of products of sparse matrices
  bool python_frames = false;
  Texts names;
  std::optional<std::int64_t> zero_ns;
  std::optional<bool> loader_in_process;
  std::vector<TraceDevice> listed;
  std::string unread_device;  // the process of a device whose events have a form that is not read

 private:
  void take(const TraceEvent& event, const std::string& name);
  void work(const TraceEvent& event, double begin, double end, const std::string& name);
  void host(const TraceEvent& event, double begin, double end);
  void part(const TraceEvent& event, HostThread& thread, double begin, double end);
  void count_flops(const TraceEvent& event, double begin, double end, std::uint32_t thread);
  void clock(const TraceEvent& event);

  Texts thread_names_;
  std::size_t works_ = 0;
  std::vector<TraceEvent> at_zero_;  // held back until it is known where the other events lie
};

}  // namespace unidle::trace::detail
