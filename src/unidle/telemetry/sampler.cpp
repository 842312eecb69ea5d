#include "unidle/telemetry/sampler.h"

#include <utility>

namespace unidle::telemetry {

Sampler::Sampler(Clock& clock, std::int64_t interval_ns, std::vector<std::unique_ptr<Source>> sources, Sink sink)
    : clock_(clock),
      interval_ns_(interval_ns),
      sources_(std::move(sources)),
      sink_(std::move(sink)),
      thread_([this](std::stop_token stop) { loop(std::move(stop)); }) {}

Sampler::~Sampler() = default;

void Sampler::loop(std::stop_token stop) {
  std::int64_t next = clock_.now_ns();
  do {
    read_all();
    next += interval_ns_;
    const std::int64_t now = clock_.now_ns();
    if (next < now) {
      next = now + interval_ns_;  // after a stall: no burst to catch up
    }
  } while (clock_.sleep_until(next, stop));
}

void Sampler::read_all() {
  for (const std::unique_ptr<Source>& source : sources_) {
    try {
      source->read(clock_.now_ns(), sink_);
    } catch (const std::exception&) {
      ++failures_;
    }
  }
}

}  // namespace unidle::telemetry
