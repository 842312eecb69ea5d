// How long the device was busy with each step.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <vector>

#include "unidle/train/events.h"

namespace unidle::train {

/// Records events around the work of each step, and tells the observer of the steps that are done. It asks the device
/// and never waits for it, and allocates nothing in a step. Does nothing on a CPU, or when nobody observes. One thread.
class DeviceTimer {
 public:
  /// `events` must outlive this.
  DeviceTimer(Events& events, at::Device device);

  /// What is queued from now on is the work of `step`. One that was begun and did not end counts no more.
  void begin(std::uint64_t step);
  /// Between gradients and update, where the host queues them apart.
  void before_update();
  /// All of the step is queued.
  void end();
  /// The step was no usual one.
  void drop() { open_ = false; }
  /// Something else comes between this step and the next: validation, a checkpoint.
  void pause() { paused_ = true; }
  /// Tells of the steps that are done by now.
  void collect();

  /// Steps at whose end the device was looked at, and those of them in which it had done all that was queued before
  /// the update: then the host is the limit. Where a step is queued as one, before the step.
  std::int64_t looked_at() const { return looked_at_; }
  std::int64_t kept_up() const { return kept_up_; }

 private:
  struct Span {
    explicit Span(at::DeviceType type);
    c10::Event first, middle, last;
    std::uint64_t step = 0;
    std::uint64_t t_ns = 0;  // when the host came to the begin
    bool has_middle = false;
    bool follows = false;  // the span before is that of the step before
    bool at_work = false;  // and the device was not done with it when the host came here
  };
  void tell(const Span& span, const Span& before);
  Span& at(std::size_t number) { return spans_[number % spans_.size()]; }

  Events& events_;
  at::Device device_;
  std::vector<Span> spans_;  // used in turns; empty where nothing is timed
  std::size_t oldest_ = 0;   // that was not told
  std::size_t next_ = 0;
  bool open_ = false;
  bool paused_ = false;
  std::int64_t looked_at_ = 0;
  std::int64_t kept_up_ = 0;
};

}  // namespace unidle::train
