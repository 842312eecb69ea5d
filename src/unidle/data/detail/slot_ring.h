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
#include <optional>
#include <vector>

#include "unidle/data/detail/plan.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/slot_allocator.h"
#include "unidle/data/source.h"

namespace unidle::data::detail {

struct SlotRing;

/// One batch in the making, then in the user's hands, then the next of its turn.
struct Slot {
  SlotRing* ring = nullptr;
  std::vector<std::byte*> fields;         // memory; none while the slot is idle
  std::vector<std::size_t> sample_bytes;  // a field, in this batch
  std::int64_t batch_index = 0;
  bool idle = true;  // neither in the making nor in anybody's hands; guarded by the ring's mutex
  /// Items still to be made, and one for handing the batch over; 0 makes it complete.
  std::atomic<std::int64_t> remaining{0};
  std::int64_t samples = 0;
  std::int64_t timing_count = 0;
  std::vector<ItemTiming> timings;
  std::vector<std::vector<std::int64_t>> extents;  // a sample, of the fields that are ragged
  /// Items that could not be read, and were left out or replaced; told by the first batch that they reach.
  std::atomic<std::int64_t> skipped{0};
  std::vector<std::uint8_t> left_out;  // by row; each written by the one thread that makes it
  std::atomic<std::int64_t> left_out_count{0};

  /// Of the earliest item that failed, so that which error is told does not depend on timing. Guarded by the ring's
  /// mutex.
  struct Failure {
    std::int64_t position = 0;
    std::exception_ptr error;
    void keep(std::int64_t of, std::exception_ptr what);
  };
  Failure failed;            // the batch fails
  Failure without_a_sample;  // it does where all of its samples were left out, and none can stand in
};

/// Batches are opened for the workers one after the other: as many ahead of the taking thread as `depth` says, where
/// their slots are not in somebody's hands. Memory goes round among the slots; with the most depth there is some for
/// each of them from the start, with less it comes and goes as it is needed. Thread-safe where it says so.
struct SlotRing {
  /// `extent_of` tells the first extent of a ragged field in a batch.
  using ExtentOf = std::function<std::int64_t(std::int64_t batch_index, std::size_t field)>;
  SlotRing(const Plan& the_plan, const std::vector<Field>& the_fields, std::int64_t count, SlotAllocator& memory,
           ExtentOf extent_of);
  ~SlotRing();
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  Slot& slot(std::int64_t batch_index) { return slots[static_cast<std::size_t>(batch_index) % slots.size()]; }
  std::int64_t count() const { return static_cast<std::int64_t>(slots.size()); }
  bool is_open(std::int64_t batch_index) const { return batch_index < opened_.load(std::memory_order_acquire); }
  bool is_complete(std::int64_t batch_index) {
    return is_open(batch_index) && slot(batch_index).remaining.load(std::memory_order_acquire) == 0;
  }

  /// Waits until the batch, and so those before it, are open to be filled; false when the ring closes. `waits` is of
  /// the calling thread. From any thread.
  bool wait_open(std::int64_t batch_index, WaitSum& waits);
  /// So many items of the slot are made; true for the last ones, whose maker calls complete(). From any thread.
  static bool count_items(Slot& slot, std::int64_t count);
  /// Closes the batch up, where samples were left out, and hands it over.
  void complete(Slot& slot);
  /// From any thread.
  void fail_item(Slot& slot, std::int64_t position, std::exception_ptr error);
  /// The sample in that row is not there. From any thread.
  void leave_out(Slot& slot, std::int64_t row, std::int64_t position, std::exception_ptr why);
  /// Waits until the open batch is complete, for so long at most when there is a limit; whether it is. From the taking
  /// thread.
  bool wait_complete(std::int64_t batch_index, std::optional<std::chrono::nanoseconds> limit);
  /// The batch that was due is in the user's hands. From the taking thread.
  void deliver();
  /// The user is done with the batch. From any thread.
  void give_back(Slot& slot);
  /// How many batches are open ahead of the taking thread, at most; from 1 to count(). From the taking thread.
  void set_depth(std::int64_t depth);
  std::int64_t depth() const { return depth_; }
  /// Batches that the user has in hand. From any thread.
  std::int64_t held();
  /// Wakes whoever waits in wait_open.
  void close();

  std::size_t memory_bytes(std::size_t field) const;  // of a slot

  const Plan plan;
  const std::vector<Field> fields;
  SlotAllocator& allocator;
  std::vector<Slot> slots;

 private:
  using Memory = std::vector<std::byte*>;  // a field

  Memory allocate() const;
  void release(Memory& memory) const;
  /// For good: not so many are needed.
  void discard(Memory& memory) const;
  void release_all();
  /// For one more slot; false where none is to be had.
  bool add_memory();
  /// Under the lock: whether workers have more to do.
  bool open_more();
  void open(Slot& slot, std::int64_t batch_index);
  static void close_up(Slot& slot);

  ExtentOf extent_of_;
  std::mutex mutex_;
  std::condition_variable complete_changed_;
  std::condition_variable opened_changed_;
  std::atomic<bool> closed_{false};
  std::atomic<std::int64_t> opened_{0};  // batches; written under the lock
  std::int64_t delivered_ = 0;           // batches
  std::int64_t given_back_ = 0;          // of those
  std::int64_t depth_;                   // written under the lock, by the taking thread
  std::vector<Memory> spare_;
};

}  // namespace unidle::data::detail
