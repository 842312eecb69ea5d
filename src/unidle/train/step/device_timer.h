// Measures how long the device was busy with each step.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <vector>

#include "unidle/train/events.h"

namespace unidle::train {

/// Records events around the work of each step, and reports the steps that are done. Queries the device without ever
/// waiting, and allocates nothing in a step. Does nothing on a CPU, or when the run is not observed. One thread.
class DeviceTimer {
 public:
  /// `events` must outlive this.
  DeviceTimer(Events& events, at::Device device);

  /// Work queued from now on belongs to `step`. A step that was begun but not ended is dropped.
  void begin(std::uint64_t step);
  /// Call between gradients and update, when the host queues them separately.
  void before_update();
  /// Call when all of the step is queued.
  void end();
  /// Drops the current step, which was not a normal one.
  void drop() { open_ = false; }
  /// Other work comes between this step and the next: validation, a checkpoint.
  void pause() { paused_ = true; }
  /// Reports the steps that are done.
  void collect();

  /// Steps at whose end the device was checked, and those at which it had finished everything queued before the update:
  /// the host is then the bottleneck. For a step queued as one, everything before the step.
  std::int64_t looked_at() const { return looked_at_; }
  std::int64_t kept_up() const { return kept_up_; }

 private:
  struct Span {
    explicit Span(at::DeviceType type);
    c10::Event first, middle, last;
    std::uint64_t step = 0;
    std::uint64_t t_ns = 0;  // when the host reached the begin
    bool has_middle = false;
    bool follows = false;  // the previous span is that of the previous step
    bool at_work = false;  // and the device was still working on it at that time
  };
  void tell(const Span& span, const Span& before);
  Span& at(std::size_t number) { return spans_[number % spans_.size()]; }

  Events& events_;
  at::Device device_;
  std::vector<Span> spans_;  // a ring; empty when nothing is timed
  std::size_t oldest_ = 0;   // not yet reported
  std::size_t next_ = 0;
  bool open_ = false;
  bool paused_ = false;
  std::int64_t looked_at_ = 0;
  std::int64_t kept_up_ = 0;
};

}  // namespace unidle::train
