// Makes items and writes them into the rows of batches, for one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/data/detail/slot_ring.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/detail/stream.h"

namespace unidle::data::detail {

/// Allocates only in the constructor. Not thread-safe; its arguments must outlive it.
class ItemMaker {
 public:
  /// `thread` 0 is the consumer; `stages` belongs to this thread.
  ItemMaker(const Stream& stream, SlotRing& ring, int thread, StageSums& stages);

  /// Makes the items and counts them in their batches, which must be open. Does not throw: batches report failures.
  void make(Plan::Range unit);

 private:
  void read(std::int64_t position, ItemTiming& timing);
  /// Returns false when an item failed; each item must then be read separately.
  bool gather(Plan::Range unit, ItemTiming& timing);
  struct Made {
    ItemRequest request;
    bool replaces;  // true for a replacement
  };
  /// Reads the item into places_. With `replace`, reads the first later item that is readable: of this rank, then of
  /// all.
  Made read_or_replace(std::int64_t position, bool replace, ItemTiming& timing) const;
  bool fits(const ItemRequest& request) const;
  void aim(std::int64_t position);
  void tell_extents(const ItemRequest& request, std::int64_t position);
  void leave_out(std::int64_t position);
  /// Puts another sample into a batch that would be empty because all of its samples were left out.
  void stand_in(std::int64_t batch_index);
  void finish(std::int64_t batch_index, std::int64_t items);
  void fail(std::int64_t position);
  /// Calls `use(batch_index, row)` for each sample of the item; row is -1 for samples that are not delivered.
  template <typename Use>
  void each_row(std::int64_t position, const Use& use) const;

  const Stream& stream_;
  SlotRing& ring_;
  int thread_;
  StageSums* stages_;
  bool ragged_ = false;
  std::vector<Places> places_;    // per sample of the item being read
  std::vector<std::byte> spare_;  // for samples that are not delivered
  std::vector<ItemRequest> requests_;
  std::vector<Rows> rows_;
};

}  // namespace unidle::data::detail
