#include "unidle/telemetry/sampler.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace unidle::telemetry {

namespace {

constexpr std::int64_t kPatience_ns = kNsPerSecond;

}  // namespace

/// State of the thread, which may outlive the sampler.
struct Sampler::State {
  State(Clock& the_clock, std::int64_t the_interval_ns, std::function<Sources()> the_make, Sink the_sink)
      : clock(the_clock), interval_ns(the_interval_ns), make(std::move(the_make)), given(std::move(the_sink)) {}

  void run(const std::stop_token& stop) {
    if (make) {
      sources = make();
    }
    std::int64_t next = 0;
    while (read_all()) {
      const std::int64_t now = clock.now_ns();
      // After a stall, do not catch up with a burst.
      next = next != 0 && next + interval_ns >= now ? next + interval_ns : now + interval_ns;
      if (!clock.sleep_until(next, stop)) {
        break;
      }
    }
    sources.clear();  // on this thread: a driver may also hang during shutdown
  }

  /// Returns false once the thread was abandoned: from then on it touches only its own state.
  bool read_all() {
    for (const std::unique_ptr<Source>& source : sources) {
      if (left) {
        return false;
      }
      try {
        source->read(clock.now_ns(), sink);
      } catch (const std::exception&) {
        ++failures;
      }
    }
    return !left;
  }

  void leave() {
    const std::lock_guard lock(mutex);
    left = true;
  }

  Clock& clock;
  std::int64_t interval_ns;
  std::function<Sources()> make;
  Sources sources;
  Sink given;
  Sink sink = [this](const Reading& reading) {
    const std::lock_guard lock(mutex);
    if (!left) {
      given(reading);
    }
  };
  std::mutex mutex;
  std::atomic<bool> left{false};
  std::atomic<std::uint64_t> failures{0};
};

Sampler::Sampler(Clock& clock, std::int64_t interval_ns, std::function<Sources()> make, Sink sink)
    : state_(std::make_shared<State>(clock, interval_ns, std::move(make), std::move(sink))),
      thread_([state = state_](const std::stop_token& stop) { state->run(stop); }) {}

Sampler::Sampler(Clock& clock, std::int64_t interval_ns, Sources sources, Sink sink)
    : Sampler(
          clock, interval_ns,
          // std::function must be copyable; sources are not.
          [shared = std::make_shared<Sources>(std::move(sources))] { return std::move(*shared); }, std::move(sink)) {}

Sampler::~Sampler() { end(); }

bool Sampler::end() {
  const bool returned = thread_.end(kPatience_ns);
  if (!returned) {
    state_->leave();
  }
  return returned;
}

std::uint64_t Sampler::failures() const { return state_->failures; }

}  // namespace unidle::telemetry
