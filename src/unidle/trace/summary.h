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

/// Kernels of one name.
struct KernelUse {
  std::string name;
  std::int64_t count = 0;
  double total_s = 0;
  bool matrix_units = false;  // by its name: tensor cores, matrix cores
};

/// Copies and fills of one kind: "HtoD (Pageable -> Device)", "Memset (Device)".
struct CopyUse {
  std::string kind;
  std::int64_t count = 0;
  double total_s = 0;
  double bytes = 0;  // as far as the events tell
};

/// Operators of one name, on the host.
struct OperatorUse {
  std::string name;
  std::int64_t count = 0;
  double self_s = 0;  // less what the operators inside it took
};

/// A time in which no device worked.
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

/// Why the busiest device was idle: what the host did in each gap until it launched the work that ended the gap.
/// Seconds; the parts sum to `idle_s`.
struct IdleTime {
  double idle_s = 0;
  double input_s = 0;      // took a batch from the loader
  double compile_s = 0;    // compiled, loaded kernels, captured graphs
  double allocator_s = 0;  // allocated or freed memory of the device
  double sync_s = 0;       // waited for the device, or had nothing queued because it had waited
  double copy_s = 0;       // was in copy calls
  double launch_s = 0;     // launched, with the Python and the operators of a launch
  double host_s = 0;       // did something else for more than a millisecond
  double profiler_s = 0;   // the profiler's own work
  double queued_s = 0;     // the work was queued already
  double unseen_s = 0;     // no events in the trace
};

/// A part of the idle time, named by what the host did.
struct IdleCause {
  std::string_view name;
  double seconds = 0;
};
/// All parts that are not zero, longest first.
std::vector<IdleCause> causes_of(const IdleTime& idle);

/// Where the steps went, on the thread that runs them; shares of their time, summing to 1 with `rest`.
struct StepParts {
  double input = 0;      // enumerate(DataLoader)
  double sync = 0;       // cuda*Synchronize, and cudaMemcpy calls while kernels run
  double transfer = 0;   // the rest of cudaMemcpy calls, which block for pageable memory
  double optimizer = 0;  // Optimizer.step
  double rest = 0;
};

struct TraceSummary {
  std::string file;
  std::int64_t events = 0;
  double span_s = 0;    // first event to last
  double window_s = 0;  // first step to last where steps are marked, otherwise the device's first work to its last
  double begin_us = 0;  // of the window, on the trace's own clock
  /// CLOCK_MONOTONIC at zero of the trace's clock, where the trace has our clock marks (clock_mark()).
  std::optional<std::int64_t> zero_ns;
  std::vector<DeviceUse> devices;  // empty: nothing ran on a device
  std::vector<DeviceGap> gaps;     // of the busiest device, longest first, at most five
  std::vector<KernelUse> kernels;  // by time, at most ten
  std::int64_t kernel_count = 0;
  double kernel_s = 0;  // sum over kernels; more than busy_s where streams overlap
  double matrix_s = 0;  // of it, kernels of the matrix units
  /// Of the busiest device, in the window: exchange with other devices, and its part that no other kernel overlaps;
  /// copies, and their part that no kernel overlaps.
  double communication_s = 0;
  double communication_alone_s = 0;
  double copying_s = 0;
  double copying_alone_s = 0;
  std::optional<IdleTime> idle;        // of the busiest device; absent without one
  std::vector<CopyUse> copies;         // by time, at most ten
  std::vector<OperatorUse> operators;  // by time of their own, at most ten; empty when there were too many to sort
  std::int64_t launches = 0;           // calls by which the host starts kernels and graphs
  double launch_s = 0;                 // spent in them
  logs::Readings step_s;               // by ProfilerStep
  std::optional<StepParts> parts;
  std::optional<double> syncs_per_step;   // calls that make the host wait for the device
  std::optional<bool> loader_in_process;  // the loader has no worker processes
  bool python_frames = false;             // each Python function was recorded, which slows the host down
  std::optional<std::int64_t> rank;       // in a group of processes
  std::string device_name;
  std::optional<std::string> capability;  // "9.0"
  std::optional<double> device_memory;    // bytes

  const DeviceUse* busiest() const;
  /// Of the window; absent without a device.
  std::optional<double> busy() const;
  /// Matrix units' part of the kernel time; absent without kernels.
  std::optional<double> matrix_share() const;
};

/// Throws kInput when it is no such trace, is damaged or cut off, or holds more kernels than memory is kept for. Memory
/// follows the number of kernels and of host events, a tenth of the file's size or less.
TraceSummary read_trace(logs::Source& source);

/// By name: a kernel of tensor cores (NVIDIA) or matrix cores (AMD). The names are those that cuBLAS, cuDNN, CUTLASS,
/// FlashAttention and Tensile give their kernels; what a compiler generates (Triton) does not tell.
bool uses_matrix_units(std::string_view kernel);

/// By name: a kernel that exchanges data with other devices (NCCL and its like).
bool is_communication(std::string_view kernel);

/// "unidle.clock.": an annotation of that name and the monotonic nanoseconds at its begin ties a trace to a record.
std::string_view clock_mark();

}  // namespace unidle::trace
