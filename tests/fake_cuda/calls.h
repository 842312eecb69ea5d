// The calls of libcudart.so.13 that PyTorch makes, upon a device that computes nothing and keeps time. It is preloaded
// (LD_PRELOAD), so that a PyTorch of CUDA 13 has GPUs: real tensors, streams, events, graphs, allocators and pinned
// memory, whose kernels take their time and leave memory as it is; but a fused update changes the first weight.
//
//   UNIDLE_FAKE_CUDA       "devices=2 kernel_us=4 ...", see Speed
//   UNIDLE_FAKE_CUDA_LOG   a file that is told "context: DEVICE", "forked: CALL", "captured: CALL"
//   UNIDLE_FAKE_CUDA_BUSY  a file that the fake NVML reads the busy time from (UNIDLE_FAKE_NVML_SCRIPT: "busy:PATH")
//
// What real CUDA refuses is refused: any call in a forked process, unsafe calls while something is captured, an event
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

/// `error`, kept for cudaGetLastError where it is one.
int failed(int error);

/// A call of the runtime: holds the machine's lock, and knows the error that any call gives now.
struct Called {
  explicit Called(const char* call) : held(machine().lock), error(failed(machine().fault(call))) {}
  std::unique_lock<std::mutex> held;
  int error;
};

}  // namespace fake
