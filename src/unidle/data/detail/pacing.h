// Measures who waits for whom, and gives a loader the pace that follows from it.
#pragma once

#include <cstdint>
#include <vector>

#include "unidle/data/detail/adaptation.h"
#include "unidle/data/detail/crew.h"
#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"

namespace unidle::data::detail {

/// For the thread that takes batches. What it is given must outlive it.
class Pacing {
 public:
  /// `waits` are those of the crew's threads, of which all will be wanted at first.
  Pacing(std::int64_t least_depth, Crew& crew, SlotRing& ring, const std::vector<WaitSum>& waits);

  /// The batch is asked for; again while it is waited for piece by piece.
  void asked(std::int64_t batch_index);
  void waited(std::int64_t ns) { consumer_waited_ns_ += ns; }
  /// It has come.
  void taken(std::int64_t samples);

 private:
  void begin_window(std::int64_t now_ns);
  std::int64_t workers_waited_ns(std::int64_t now_ns) const;

  Crew& crew_;
  SlotRing& ring_;
  const std::vector<WaitSum>& waits_;
  Adaptation adaptation_;
  std::int64_t asked_for_ = -1;
  // Of the window:
  std::int64_t start_ns_ = 0;
  std::int64_t workers_waited_at_start_ns_ = 0;
  std::int64_t consumer_waited_ns_ = 0;
  std::int64_t samples_ = 0;
  int batches_ = 0;
  std::int64_t fewest_ready_ = 0;
};

}  // namespace unidle::data::detail
