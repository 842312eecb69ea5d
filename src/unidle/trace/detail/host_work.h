// What the host does, told by the names of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "unidle/trace/detail/events.h"

namespace unidle::trace::detail {

/// Events nest: each moment counts for the first of these that holds then.
enum class HostWork : std::uint8_t {
  kInput,      // the loop takes a batch from its loader
  kCompile,    // compiling, loading kernels, capturing graphs
  kAllocator,  // memory of the device is asked for or given back
  kSync,       // the host waits for the device
  kCopy,       // a copy call, which blocks for pageable memory
  kLaunch,     // a call that starts kernels or graphs
  kProfiler,   // the profiler's own work
  kOperator,   // an operator, outside of all these
  kProgram,    // the program between operators, as far as it was recorded
};
constexpr std::size_t kHostWorks = 9;

/// Newer and older spellings of the profiler, and what stood before it.
bool is_kernel(const TraceEvent& event);
bool is_copy(const TraceEvent& event);
/// Of a device, or about one: its work, its annotations, its waits.
bool is_device_side(const TraceEvent& event);
bool is_operator(const TraceEvent& event);
bool is_python_frame(const TraceEvent& event);

std::optional<HostWork> host_work_of(const TraceEvent& event);
/// A copy call that returns only when the copy is done, whatever the memory.
bool is_blocking_copy(const TraceEvent& event);
/// Begin and end of capturing a graph, during which launches start nothing.
bool begins_capture(const TraceEvent& event);
bool ends_capture(const TraceEvent& event);

}  // namespace unidle::trace::detail
