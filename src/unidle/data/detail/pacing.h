// Measures how consumer and workers wait, and sets a loader's pace from it.
#pragma once

#include <cstdint>
#include <vector>

#include "unidle/data/detail/adaptation.h"
#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/detail/worker_threads.h"

namespace unidle::data::detail {

/// Used by the consumer thread only. Its arguments must outlive it.
class Pacing {
 public:
  /// `waits` are those of `threads`, which are all active at first.
  Pacing(std::int64_t least_depth, WorkerThreads& threads, SlotRing& ring, const std::vector<WaitSum>& waits);

  /// The batch was requested; called again for each partial wait.
  void asked(std::int64_t batch_index);
  void waited(std::int64_t ns) { consumer_waited_ns_ += ns; }
  /// The batch has arrived.
  void taken(std::int64_t samples);

 private:
  void begin_window(std::int64_t now_ns);
  std::int64_t workers_waited_ns(std::int64_t now_ns) const;

  WorkerThreads& threads_;
  SlotRing& ring_;
  const std::vector<WaitSum>& waits_;
  Adaptation adaptation_;
  std::int64_t asked_for_ = -1;
  // Of the current window:
  std::int64_t start_ns_ = 0;
  std::int64_t workers_waited_at_start_ns_ = 0;
  std::int64_t consumer_waited_ns_ = 0;
  std::int64_t samples_ = 0;
  int batches_ = 0;
  std::int64_t fewest_ready_ = 0;
};

}  // namespace unidle::data::detail
