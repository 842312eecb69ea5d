// The ring of batch slots between the workers and the thread that takes batches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// Which samples, items and batches belong together; all of it arithmetic on the start.
/// "Position" counts items over all epochs: position p is item order(p % items) of epoch p / items.
struct Plan {
  std::int64_t start_sample;
  std::int64_t batch;
  std::int64_t samples_per_item;

  std::int64_t first_position() const { return start_sample / samples_per_item; }
  std::int64_t first_sample(std::int64_t batch_index) const { return start_sample + batch_index * batch; }
  /// The first item that has a sample in the batch, and the one after the last.
  std::int64_t begin_position(std::int64_t batch_index) const { return first_sample(batch_index) / samples_per_item; }
  std::int64_t end_position(std::int64_t batch_index) const {
    return (first_sample(batch_index + 1) - 1) / samples_per_item + 1;
  }
  /// The first item whose time is told with this batch: an item that straddles batches is told once, with the earliest.
  std::int64_t begin_timing(std::int64_t batch_index) const {
    const std::int64_t begin = begin_position(batch_index);
    return batch_index == 0 || begin * samples_per_item >= first_sample(batch_index) ? begin : begin + 1;
  }
  /// The batches that an item reaches.
  std::int64_t first_batch(std::int64_t position) const {
    const std::int64_t offset = position * samples_per_item - start_sample;
    return offset <= 0 ? 0 : offset / batch;
  }
  std::int64_t last_batch(std::int64_t position) const {
    return ((position + 1) * samples_per_item - 1 - start_sample) / batch;
  }
  /// How many batches beyond its first one an item can reach.
  std::int64_t straddle() const {
    const bool aligned = batch % samples_per_item == 0 && start_sample % samples_per_item == 0;
    return aligned ? 0 : (samples_per_item + batch - 2) / batch;
  }
};

struct SlotRing;

/// One batch in the making, then in the user's hands, then the next of its turn.
struct Slot {
  SlotRing* ring = nullptr;
  std::vector<std::byte*> fields;
  /// Written under the ring's mutex; a worker that sees its batch here may fill the slot.
  std::atomic<std::int64_t> batch_index{0};
  /// Items still to be made; 0 makes the batch complete.
  std::atomic<std::int64_t> remaining{0};
  std::int64_t timing_count = 0;
  std::vector<ItemTiming> timings;
  std::atomic<std::int64_t> skipped{0};
  // Of the earliest failed item, so that which error is told does not depend on timing. Guarded by the ring's mutex.
  std::int64_t error_position = 0;
  std::exception_ptr error;
};

/// Thread-safe where it says so. Owns the memory of the slots.
struct SlotRing {
  SlotRing(const Plan& the_plan, const std::vector<Field>& fields, std::int64_t count, SlotAllocator& memory);
  ~SlotRing();
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  Slot& slot(std::int64_t batch_index) { return slots[static_cast<std::size_t>(batch_index) % slots.size()]; }
  bool is_free_for(std::int64_t batch_index) {
    return slot(batch_index).batch_index.load(std::memory_order_acquire) == batch_index;
  }

  /// Waits until the slots of these batches are free; false when the ring closes. From any thread.
  bool wait_free(std::int64_t first_batch, std::int64_t last_batch);
  /// One item of the slot is made; the last one hands the batch over. From any thread.
  void finish_item(Slot& slot);
  /// From any thread.
  void fail_item(Slot& slot, std::int64_t position, std::exception_ptr error);
  /// Waits until the batch is complete. From the taking thread.
  void wait_complete(Slot& slot);
  /// The user is done with the batch. From any thread.
  void give_back(Slot& slot);
  /// Wakes whoever waits in wait_free.
  void close();

  Plan plan;
  std::vector<std::size_t> sample_bytes;  // a field
  SlotAllocator& allocator;
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable complete_changed;
  std::condition_variable free_changed;
  bool closed = false;

 private:
  void prepare(Slot& slot, std::int64_t batch_index);
  void release_memory();
};

}  // namespace unidle::data::detail
