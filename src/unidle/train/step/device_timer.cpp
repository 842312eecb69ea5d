#include "unidle/train/step/device_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace unidle::train {

namespace {

/// The host is seldom further ahead. Steps without a free span are not timed.
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
  if (next_ - oldest_ + 1 == spans_.size()) {  // the one before the oldest is still needed
    return;
  }
  Span& span = at(next_);
  span.step = step;
  span.t_ns = Events::now_ns();
  span.has_middle = false;
  const Span& before = at(next_ + spans_.size() - 1);
  span.follows = next_ > 0 && !paused_ && before.step + 1 == step;
  span.at_work = span.follows && !before.last.query();
  paused_ = false;
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
    tell(at(oldest_), at(oldest_ + spans_.size() - 1));
    ++oldest_;
  }
}

void DeviceTimer::tell(const Span& span, const Span& before) {
  const auto ns = [](const c10::Event& from, const c10::Event& to) {
    return static_cast<std::uint64_t>(std::max(0.0, from.elapsedTime(to)) * 1e6);
  };
  const std::uint64_t work = ns(span.first, span.last);
  const std::uint64_t between = span.follows ? ns(before.last, span.first) : 0;
  events_.device_time(span.step, span.t_ns, work + (span.at_work ? between : 0), span.follows ? work + between : 0);
}

}  // namespace unidle::train
