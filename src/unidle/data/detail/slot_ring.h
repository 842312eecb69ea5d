// The ring of batch slots between the workers and the consumer thread.
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

/// Holds a batch in the making, then in the user's hands, then the next one assigned to it.
struct Slot {
  SlotRing* ring = nullptr;
  std::vector<std::byte*> fields;         // memory; empty while the slot is idle
  std::vector<std::size_t> sample_bytes;  // per field, in this batch
  std::int64_t batch_index = 0;
  bool idle = true;  // neither being filled nor held by the user; guarded by the ring's mutex
  /// Unfinished items, plus one for the hand-over; 0 means complete.
  std::atomic<std::int64_t> remaining{0};
  std::int64_t samples = 0;
  std::int64_t timing_count = 0;
  std::vector<ItemTiming> timings;
  std::vector<std::vector<std::int64_t>> extents;  // per sample, of ragged fields
  /// Unreadable items that were left out or replaced; counted in the first batch they have samples in.
  std::atomic<std::int64_t> skipped{0};
  std::vector<std::uint8_t> left_out;  // by row; each written by the one thread that makes it
  std::atomic<std::int64_t> left_out_count{0};

  /// The failure of the earliest item, so that the reported error does not depend on timing. Guarded by the ring's
  /// mutex.
  struct Failure {
    std::int64_t position = 0;
    std::exception_ptr error;
    void keep(std::int64_t of, std::exception_ptr what);
  };
  Failure failed;            // the batch fails
  Failure without_a_sample;  // when all samples were left out and none can replace them
};

/// Opens batches for the workers in order, up to `depth` ahead of the consumer, if the user does not hold their slots.
/// Slots share memory: at maximum depth each has its own from the start, otherwise memory is added and discarded as
/// needed. Thread-safe where noted.
struct SlotRing {
  /// Returns the first extent of a ragged field in a batch.
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

  /// Waits until the batch, and so all earlier ones, may be filled; returns false when the ring closes. `waits` belongs
  /// to the calling thread. Thread-safe.
  bool wait_open(std::int64_t batch_index, WaitSum& waits);
  /// Counts finished items of the slot. Returns true for the last ones, whose maker calls complete(). Thread-safe.
  static bool count_items(Slot& slot, std::int64_t count);
  /// Removes the gaps of left-out samples and hands the batch over.
  void complete(Slot& slot);
  /// Thread-safe.
  void fail_item(Slot& slot, std::int64_t position, std::exception_ptr error);
  /// Leaves out the sample in this row. Thread-safe.
  void leave_out(Slot& slot, std::int64_t row, std::int64_t position, std::exception_ptr why);
  /// Waits until the open batch is complete, at most `limit` if given; returns whether it is. Consumer thread only.
  bool wait_complete(std::int64_t batch_index, std::optional<std::chrono::nanoseconds> limit);
  /// Marks the next batch as held by the user. Consumer thread only.
  void deliver();
  /// Marks the batch as returned by the user. Thread-safe.
  void give_back(Slot& slot);
  /// Sets how many batches may be open ahead of the consumer, from 1 to count(). Consumer thread only.
  void set_depth(std::int64_t depth);
  std::int64_t depth() const { return depth_; }
  /// Number of batches the user holds. Thread-safe.
  std::int64_t held();
  /// Wakes all threads in wait_open().
  void close();

  std::size_t memory_bytes(std::size_t field) const;  // per slot

  const Plan plan;
  const std::vector<Field> fields;
  SlotAllocator& allocator;
  std::vector<Slot> slots;

 private:
  using Memory = std::vector<std::byte*>;  // per field

  Memory allocate() const;
  void release(Memory& memory) const;
  /// Permanently returns memory that is no longer needed.
  void discard(Memory& memory) const;
  void release_all();
  /// Adds memory for one slot; returns false when there is none.
  bool add_memory();
  /// Returns whether workers have more to do. REQUIRES: the lock is held.
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
  std::int64_t given_back_ = 0;          // of the delivered ones
  std::int64_t depth_;                   // written under the lock by the consumer
  std::vector<Memory> spare_;
};

}  // namespace unidle::data::detail
