// The calls of libcudart.so.13 that PyTorch makes, for a device that computes nothing and keeps time. It is preloaded
// (LD_PRELOAD), so that a PyTorch of CUDA 13 has GPUs: real tensors, streams, events, graphs, allocators and pinned
// memory, whose kernels take time and leave memory unchanged, except that a fused update changes the first weight.
//
//   UNIDLE_FAKE_CUDA       "devices=2 kernel_us=4 ...", see Speed
//   UNIDLE_FAKE_CUDA_LOG   a file that receives "context: DEVICE", "forked: CALL", "captured: CALL"
//   UNIDLE_FAKE_CUDA_BUSY  a file from which the fake NVML reads the busy time (UNIDLE_FAKE_NVML_SCRIPT: "busy:PATH")
//
// Calls that real CUDA refuses are refused: any call in a forked process, unsafe calls during a capture, an event
// and a stream of two devices.
#pragma once

#include <mutex>
#include <utility>

#include "device.h"

namespace fake {

struct Dim {
  unsigned x, y, z;
};

/// What cudaGetLastError returns in this thread.
extern thread_local int last_error;

/// Returns `error`, and stores it for cudaGetLastError unless it is success.
int failed(int error);

/// A call of the runtime: holds the machine's lock, and knows the error that every call now returns.
struct Called {
  explicit Called(const char* call) : held(machine().lock), error(failed(machine().fault(call))) {}
  std::unique_lock<std::mutex> held;
  int error;
};

}  // namespace fake
