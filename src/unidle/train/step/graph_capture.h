// Captures device work once and launches it as a unit: CUDA graphs.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace unidle::train {

/// Captured work. Reads and writes the memory that it used when captured. May be destroyed while it still runs.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Queues all of it without waiting. Throws what the launch throws.
  virtual void replay() = 0;
};

/// Captures work of one device. While it lives, the thread that created it queues its work on a stream that can be
/// captured. One thread.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  /// Calls `work` once and captures what it queues, without executing it. Throws when `work` throws or does something
  /// that cannot be captured, such as waiting for the device; the queued work is then dropped. Waits for the device,
  /// and releases cached memory.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
};

/// For a CUDA device. nullptr for other devices; nullptr, with a warning, when the library cannot be loaded.
std::unique_ptr<GraphCapture> graph_capture_of(at::Device device);

/// Type of unidle_graph_capture in libunidle_cuda.so. Throws what torch throws.
using MakeGraphCapture = GraphCapture* (*)(int device);

}  // namespace unidle::train
