// Records a few steps with the torch profiler, for `unidle run --trace N`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "unidle/train/events.h"

namespace unidle::train {

/// Does nothing unless UNIDLE_TRACE_STEPS is a number of steps and a probe folder exists. Writes the trace beside the
/// record and its path into a `trace` note, as the Python shim does. Never throws: an error ends the window, and the
/// note has the reason. Used from the training thread.
class Tracing {
 public:
  /// The run goes from step `from` to `to`, which places the window; `events` must outlive this.
  Tracing(Events& events, bool cuda, std::int64_t from, std::int64_t to);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// Call after each step; `steps` is the number done so far.
  void step_over(std::int64_t steps);

 private:
  struct Window;
  void open(std::int64_t steps);
  void close();

  Events& events_;
  bool cuda_;
  std::int64_t wanted_ = 0;  // 0: no window, or it is over
  std::int64_t first_ = 0;   // the profiler is prepared after this step; the window begins a step later
  std::unique_ptr<Window> window_;
};

}  // namespace unidle::train
