// Work of a device, recorded once and launched again as one: CUDA graphs.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace unidle::train {

/// Recorded work. It reads and writes the memory that it had when it was recorded. May die while it still runs.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// Queues all of it. Does not wait. Throws what the launch throws.
  virtual void replay() = 0;
};

/// Records what one device is given to do. While it lives, the thread that made it queues its work on a stream that
/// can be recorded. One thread.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  /// Calls `work` once and records what it queues, which is not done then. Throws when `work` throws, or does what
  /// cannot be recorded, such as waiting for the device; what it queued is dropped. Waits for the device, and gives
  /// back the memory that is kept for later work.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
};

/// The one of a CUDA device. nullptr for other devices; also where its library cannot be loaded, with a warning.
std::unique_ptr<GraphCapture> graph_capture_of(at::Device device);

/// What libunidle_cuda.so has under the name unidle_graph_capture. Throws what torch throws.
using MakeGraphCapture = GraphCapture* (*)(int device);

}  // namespace unidle::train
