#include "unidle/train/step/device_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace unidle::train {

namespace {

/// The host is seldom further ahead. Steps that find none free are not timed.
constexpr std::size_t kSpans = 64;

}  // namespace

DeviceTimer::Span::Span(at::DeviceType type)
    : first(type, c10::EventFlag::BACKEND_DEFAULT),
      middle(type, c10::EventFlag::BACKEND_DEFAULT),
      last(type, c10::EventFlag::BACKEND_DEFAULT) {}

DeviceTimer::DeviceTimer(Events& events, at::Device device) : events_(events), device_(device) {
  if (device.is_cpu() || !events.observed()) {
    return;
  }
  spans_.reserve(kSpans);
  for (std::size_t i = 0; i < kSpans; ++i) {
    spans_.emplace_back(device.type());
  }
}

void DeviceTimer::begin(std::uint64_t step) {
  open_ = false;
  if (spans_.empty()) {
    return;
  }
  collect();
  if (next_ - oldest_ == spans_.size()) {
    return;
  }
  Span& span = at(next_);
  span.step = step;
  span.t_ns = Events::now_ns();
  span.has_middle = false;
  span.first.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  open_ = true;
}

void DeviceTimer::before_update() {
  if (open_) {
    Span& span = at(next_);
    span.middle.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    span.has_middle = true;
  }
}

void DeviceTimer::end() {
  if (!open_) {
    return;
  }
  open_ = false;
  Span& span = at(next_);
  ++looked_at_;
  kept_up_ += (span.has_middle ? span.middle : span.first).query() ? 1 : 0;
  span.last.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  ++next_;
}

void DeviceTimer::collect() {
  while (oldest_ != next_ && at(oldest_).last.query()) {
    const Span& span = at(oldest_);
    events_.device_time(span.step, span.t_ns, static_cast<std::uint64_t>(span.first.elapsedTime(span.last) * 1e6));
    ++oldest_;
  }
}

}  // namespace unidle::train
