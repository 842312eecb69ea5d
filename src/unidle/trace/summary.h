// A torch profiler trace (Chrome JSON, plain or gzip): what the device did, and what the host did meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/gpu_log.h"
#include "unidle/logs/source.h"

namespace unidle::trace {

/// All kernels of one name.
struct KernelUse {
  std::string name;
  std::int64_t count = 0;
  double total_s = 0;
  bool matrix_units = false;  // judged by the name: tensor cores, matrix cores
};

/// Copies and fills of one kind: "HtoD (Pageable -> Device)", "Memset (Device)".
struct CopyUse {
  std::string kind;
  std::int64_t count = 0;
  double total_s = 0;
  double bytes = 0;  // as far as the events say
};

/// All operators of one name, on the host.
struct OperatorUse {
  std::string name;
  std::int64_t count = 0;
  double self_s = 0;  // without the operators inside it
};

/// Floating-point operations of one number type.
struct FlopsOfType {
  std::string type;  // "bf16", "fp32", ...
  double flops = 0;
};

/// The type of most operations; empty when none has more than half of them.
struct MainType {
  std::string name;
  bool mostly = false;  // others have more than a tenth
};

/// A period in which no device worked.
struct DeviceGap {
  double begin_s = 0;  // since the begin of the window
  double seconds = 0;
  std::string host;  // the most specific host event that spans most of it; empty when none was seen
};

/// One device of the trace.
struct DeviceUse {
  std::string id;
  double busy_s = 0;  // union of kernels, copies and fills over all streams, inside the window
};

/// Why the busiest device was idle: what the host did in each gap until it launched the work that ended the gap. In
/// seconds; the parts sum to `idle_s`.
struct IdleTime {
  double idle_s = 0;
  double input_s = 0;      // waited for a batch from the loader
  double compile_s = 0;    // compiled, loaded kernels, captured graphs
  double allocator_s = 0;  // allocated or freed memory of the device
  double sync_s = 0;       // waited for the device, or had nothing queued because it had waited
  double copy_s = 0;       // was in copy calls
  double launch_s = 0;     // launched, including Python and operators of a launch
  double host_s = 0;       // did something else for more than a millisecond
  double unnamed_s = 0;    // the part of host_s in which no thread has an event
  double profiler_s = 0;   // the profiler's own work
  double queued_s = 0;     // the work was queued already
  double unseen_s = 0;     // no events in the trace
};

/// A part of the idle time, named after what the host did.
struct IdleCause {
  std::string_view name;
  double seconds = 0;
};
/// All parts other than zero, longest first.
std::vector<IdleCause> causes_of(const IdleTime& idle);

/// Shares of the time of steps, on the thread that runs them; they sum to 1 with `rest`.
struct StepParts {
  double input = 0;      // enumerate(DataLoader)
  double sync = 0;       // cuda*Synchronize, and cudaMemcpy calls while kernels run
  double transfer = 0;   // other cudaMemcpy calls, which block for pageable memory
  double optimizer = 0;  // Optimizer.step
  double rest = 0;
};

struct TraceSummary {
  std::string file;
  std::int64_t events = 0;
  double span_s = 0;    // first event to last
  double window_s = 0;  // first step to last when steps are marked, otherwise the device's first work to its last
  double begin_us = 0;  // of the window, on the trace's own clock
  /// CLOCK_MONOTONIC at zero of the trace's clock, when the trace has our clock marks (clock_mark()).
  std::optional<std::int64_t> zero_ns;
  std::vector<DeviceUse> devices;  // empty: nothing ran on a device
  std::vector<DeviceGap> gaps;     // of the busiest device, longest first, at most five
  std::vector<KernelUse> kernels;  // by time, at most ten
  std::int64_t kernel_count = 0;
  double kernel_s = 0;  // sum over kernels; more than busy_s where streams overlap
  double matrix_s = 0;  // the part of it on matrix units
  /// Of the busiest device, inside the window: communication with other devices, and the part that no other kernel
  /// overlaps; copies, and the part that no kernel overlaps.
  double communication_s = 0;
  double communication_alone_s = 0;
  double copying_s = 0;
  double copying_alone_s = 0;
  std::optional<IdleTime> idle;        // of the busiest device; absent without one
  std::vector<CopyUse> copies;         // by time, at most ten
  std::vector<OperatorUse> operators;  // by their own time, at most ten; empty when there were too many to sort
  std::int64_t launches = 0;           // calls by which the host starts kernels and graphs
  double launch_s = 0;                 // spent in launches
  /// In the steps, or in the whole trace without marked steps: matrix products, convolutions, attention, recurrent
  /// layers. Empty when the profiler recorded no shapes, and when the count is not sure. Most first.
  std::vector<FlopsOfType> flops;
  logs::Readings step_s;  // by ProfilerStep
  std::optional<StepParts> parts;
  std::optional<double> syncs_per_step;   // calls that make the host wait for the device
  std::optional<bool> loader_in_process;  // the loader has no worker processes
  bool python_frames = false;             // each Python function was recorded, which slows the host down
  std::optional<std::int64_t> rank;       // in a group of processes
  std::string unread_device;  // a device whose work the trace has in a form that is not read; then `devices` is empty
  std::string device_name;    // of the busiest one
  std::optional<std::string> capability;  // "9.0"
  std::optional<double> device_memory;    // bytes

  const DeviceUse* busiest() const;
  /// The busy share of the window; absent without a device.
  std::optional<double> busy() const;
  /// The matrix units' share of kernel time; absent without kernels.
  std::optional<double> matrix_share() const;
  double all_flops() const;
  MainType main_type() const;
  /// FLOPs of all number types in a step; absent without marked steps or shapes.
  std::optional<double> flops_per_step() const;
  /// The window divided by its steps: with the work that the device still has to do when the host ends the last one.
  std::optional<double> seconds_per_step() const;
  /// The time that the FLOPs of a step take at the device's data-sheet peak; of the whole trace if no steps are marked.
  /// Divided by the time of a step it is the model FLOP utilisation (MFU). Absent for an unknown number type, an
  /// unknown device, several devices or none, and when it is longer than the window.
  std::optional<double> seconds_at_peak() const;
};

/// Throws kInput when the source is not such a trace, is damaged or cut off, or has more kernels than the bound. Memory
/// follows the number of kernels and host events: a tenth of the file's size or less.
TraceSummary read_trace(logs::Source& source);

/// Whether the name is that of a kernel on tensor cores (NVIDIA) or matrix cores (AMD). Knows the names of cuBLAS,
/// cuDNN, CUTLASS, FlashAttention and Tensile; names of generated kernels (Triton) do not say.
bool uses_matrix_units(std::string_view kernel);

/// Whether the name is that of a kernel that communicates with other devices (such as NCCL's).
bool is_communication(std::string_view kernel);

/// "unidle.clock.": annotations with this prefix and the monotonic nanoseconds at their begin tie a trace to a record.
std::string_view clock_mark();

}  // namespace unidle::trace
