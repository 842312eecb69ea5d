// One thread's way from places in the order to the rows of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/detail/stream.h"

namespace unidle::data::detail {

/// Allocates nothing once it is made. For one thread; what it is given must outlive it.
class ItemMaker {
 public:
  /// `thread` 0 is the one that takes batches; `stages` is the thread's own.
  ItemMaker(const Stream& stream, SlotRing& ring, int thread, StageSums& stages);

  /// Makes the items and counts them into their batches, which must be open. Does not throw: what fails is told by the
  /// batches.
  void make(Plan::Range unit);

 private:
  void read(std::int64_t position, ItemTiming& timing);
  /// False when an item failed; then each is to be read by itself.
  bool gather(Plan::Range unit, ItemTiming& timing);
  struct Made {
    ItemRequest request;
    bool replaces;  // the one that was due
  };
  /// Reads the item into places_, or with `replace` the first one after it that can be read: of this rank's, then of
  /// all.
  Made read_or_replace(std::int64_t position, bool replace, ItemTiming& timing) const;
  bool fits(const ItemRequest& request) const;
  void aim(std::int64_t position);
  void tell_extents(const ItemRequest& request, std::int64_t position);
  void leave_out(std::int64_t position);
  /// Another sample in a batch of which all were left out, so that none is empty.
  void stand_in(std::int64_t batch_index);
  void finish(std::int64_t batch_index, std::int64_t items);
  void fail(std::int64_t position);
  /// Calls `use(batch_index, row)` for the samples of the item, where -1 is the row of one that nobody gets.
  template <typename Use>
  void each_row(std::int64_t position, const Use& use) const;

  const Stream& stream_;
  SlotRing& ring_;
  int thread_;
  StageSums* stages_;
  bool ragged_ = false;
  std::vector<Places> places_;    // a sample of the item that is read
  std::vector<std::byte> spare_;  // for samples that nobody gets
  std::vector<ItemRequest> requests_;
  std::vector<Rows> rows_;
};

}  // namespace unidle::data::detail
