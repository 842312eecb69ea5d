// Classifies what the host does by the names of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "unidle/trace/detail/events.h"

namespace unidle::trace::detail {

/// Events nest: each moment counts for the first of these kinds that applies.
enum class HostWork : std::uint8_t {
  kInput,      // the loop waits for a batch from its loader
  kCompile,    // compiling, loading kernels, capturing graphs
  kAllocator,  // device memory is allocated or freed
  kSync,       // the host waits for the device
  kCopy,       // a copy call, which blocks for pageable memory
  kLaunch,     // a call that starts kernels or graphs
  kProfiler,   // the profiler's own work
  kOperator,   // an operator, outside of all the above
  kProgram,    // the program between operators, as far as it was recorded
};
constexpr std::size_t kHostWorks = 9;

/// Covers the spellings of older and newer profilers.
bool is_kernel(const TraceEvent& event);
bool is_copy(const TraceEvent& event);
/// An event on a device or about one: its work, annotations or waits.
bool is_device_side(const TraceEvent& event);
bool is_operator(const TraceEvent& event);
bool is_python_frame(const TraceEvent& event);

/// True for the processes under which JAX and TensorFlow ("/device:GPU:0"), Ascend and MTIA write a device's work.
bool names_unread_device(std::string_view process);

std::optional<HostWork> host_work_of(const TraceEvent& event);
/// A copy call that returns only after the copy, whatever the kind of memory.
bool is_blocking_copy(const TraceEvent& event);
bool is_graph_launch(const TraceEvent& event);
/// A launch of a kernel by the driver's own call, as generated code does it. Libraries do so too.
bool is_driver_launch(const TraceEvent& event);
/// The begin and end of a graph capture, during which launches start no work.
bool begins_capture(const TraceEvent& event);
bool ends_capture(const TraceEvent& event);

}  // namespace unidle::trace::detail
