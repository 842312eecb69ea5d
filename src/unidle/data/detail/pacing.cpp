#include "unidle/data/detail/pacing.h"

#include <algorithm>

#include "unidle/base/clock.h"

namespace unidle::data::detail {

namespace {

// Minimum duration and number of batches of a window, so that it is meaningful for cheap and expensive batches.
constexpr std::int64_t kLeastNs = 50 * kNsPerMs;
constexpr int kLeastBatches = 4;

}  // namespace

Pacing::Pacing(std::int64_t least_depth, WorkerThreads& threads, SlotRing& ring, const std::vector<WaitSum>& waits)
    : threads_(threads),
      ring_(ring),
      waits_(waits),
      adaptation_({static_cast<int>(waits.size()), std::min(least_depth, ring.count()), ring.count()}) {
  begin_window(system_clock().now_ns());
}

void Pacing::begin_window(std::int64_t now_ns) {
  start_ns_ = now_ns;
  workers_waited_at_start_ns_ = workers_waited_ns(now_ns);
  consumer_waited_ns_ = 0;
  samples_ = 0;
  batches_ = 0;
  fewest_ready_ = ring_.count();
}

std::int64_t Pacing::workers_waited_ns(std::int64_t now_ns) const {
  std::int64_t sum = 0;
  for (const WaitSum& wait : waits_) {
    sum += wait.ns(now_ns);
  }
  return sum;
}

void Pacing::asked(std::int64_t batch_index) {
  if (asked_for_ == batch_index) {
    return;
  }
  asked_for_ = batch_index;
  std::int64_t ready = 0;
  while (ready < fewest_ready_ && ring_.is_complete(batch_index + ready)) {
    ++ready;
  }
  fewest_ready_ = std::min(fewest_ready_, ready);
}

void Pacing::taken(std::int64_t samples) {
  samples_ += samples;
  ++batches_;
  const std::int64_t now_ns = system_clock().now_ns();
  const std::int64_t span_ns = now_ns - start_ns_;
  if (span_ns < kLeastNs || batches_ < kLeastBatches) {
    return;
  }
  const auto span = static_cast<double>(span_ns);
  const auto share = [&](std::int64_t ns, int of) {
    return std::clamp(static_cast<double>(ns) / (span * of), 0.0, 1.0);
  };
  const Pace pace = adaptation_.next({share(consumer_waited_ns_, 1),
                                      share(workers_waited_ns(now_ns) - workers_waited_at_start_ns_, threads_.wanted()),
                                      static_cast<double>(samples_) / seconds(span_ns), fewest_ready_});
  threads_.want(pace.workers);
  ring_.set_depth(pace.depth);
  begin_window(now_ns);
}

}  // namespace unidle::data::detail
