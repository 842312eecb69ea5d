// A window of a few steps under the torch profiler, as `unidle run --trace N` asks for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "unidle/train/events.h"

namespace unidle::train {

/// Does nothing unless UNIDLE_TRACE_STEPS names a number of steps and a probe folder is there. The trace goes beside
/// the record, its whereabouts into a `trace` note, as the Python shim does it. Never throws: trouble ends the window,
/// and the note says why. One thread, the one that trains.
class Tracing {
 public:
  /// The run goes from step `from` to `to`, so that the window fits in; `events` must outlive this.
  Tracing(Events& events, bool cuda, std::int64_t from, std::int64_t to);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// After each step; `steps` were made so far.
  void step_over(std::int64_t steps);

 private:
  struct Window;
  void open(std::int64_t steps);
  void close();

  Events& events_;
  bool cuda_;
  std::int64_t wanted_ = 0;  // 0: there is no window, or no more
  std::int64_t first_ = 0;   // the step after which the profiler is prepared; the window begins a step later
  std::unique_ptr<Window> window_;
};

}  // namespace unidle::train
