// The ring of batch slots between the workers and the thread that takes batches.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "unidle/data/detail/plan.h"
#include "unidle/data/loader.h"

namespace unidle::data::detail {

struct SlotRing;

/// One batch in the making, then in the user's hands, then the next of its turn.
struct Slot {
  SlotRing* ring = nullptr;
  std::vector<std::byte*> fields;
  std::vector<std::size_t> sample_bytes;  // a field, in this batch
  /// Written under the ring's mutex; a worker that sees its batch here may fill the slot.
  std::atomic<std::int64_t> batch_index{0};
  /// Items still to be made; 0 makes the batch complete.
  std::atomic<std::int64_t> remaining{0};
  std::int64_t samples = 0;
  std::int64_t timing_count = 0;
  std::vector<ItemTiming> timings;
  std::atomic<std::int64_t> skipped{0};
  // Of the earliest failed item, so that which error is told does not depend on timing. Guarded by the ring's mutex.
  std::int64_t error_position = 0;
  std::exception_ptr error;
};

/// Thread-safe where it says so. Owns the memory of the slots.
struct SlotRing {
  /// `extent_of` tells the first extent of a ragged field in a batch.
  using ExtentOf = std::function<std::int64_t(std::int64_t batch_index, std::size_t field)>;
  SlotRing(const Plan& the_plan, const std::vector<Field>& the_fields, std::int64_t count, SlotAllocator& memory,
           ExtentOf extent_of);
  ~SlotRing();
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  Slot& slot(std::int64_t batch_index) { return slots[static_cast<std::size_t>(batch_index) % slots.size()]; }
  bool is_free_for(std::int64_t batch_index) {
    return slot(batch_index).batch_index.load(std::memory_order_acquire) == batch_index;
  }

  /// Waits until the slots of these batches are free; false when the ring closes. From any thread.
  bool wait_free(std::int64_t first_batch, std::int64_t last_batch);
  /// So many items of the slot are made; the last one hands the batch over. From any thread.
  void finish_items(Slot& slot, std::int64_t count);
  /// From any thread.
  void fail_item(Slot& slot, std::int64_t position, std::exception_ptr error);
  /// Waits until the batch is complete. From the taking thread.
  void wait_complete(Slot& slot);
  /// The same for so long at most; whether it is complete.
  bool wait_complete(Slot& slot, std::chrono::nanoseconds limit);
  /// The user is done with the batch. From any thread.
  void give_back(Slot& slot);
  /// Wakes whoever waits in wait_free.
  void close();

  std::size_t memory_bytes(std::size_t field) const;  // of a slot

  const Plan plan;
  const std::vector<Field> fields;
  SlotAllocator& allocator;
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable complete_changed;
  std::condition_variable free_changed;
  bool closed = false;

 private:
  void prepare(Slot& slot, std::int64_t batch_index);
  void release_memory();

  ExtentOf extent_of_;
};

}  // namespace unidle::data::detail
