#include "unidle/data/detail/slot_ring.h"

#include <algorithm>
#include <utility>

namespace unidle::data::detail {

SlotRing::SlotRing(const Plan& the_plan, const std::vector<Field>& fields, std::int64_t count, SlotAllocator& memory)
    : plan(the_plan), allocator(memory), slots(static_cast<std::size_t>(count)) {
  const auto batch = static_cast<std::size_t>(plan.batch);
  // Items that begin in a batch, and the one that the stream may start in the middle of.
  const auto most_timings = static_cast<std::size_t>((plan.batch - 1) / plan.samples_per_item + 2);
  for (const Field& field : fields) {
    sample_bytes.push_back(field.bytes());
  }
  try {
    std::int64_t batch_index = 0;
    for (Slot& slot : slots) {
      slot.ring = this;
      slot.timings.resize(most_timings);
      slot.fields.reserve(fields.size());
      for (const std::size_t bytes : sample_bytes) {
        slot.fields.push_back(allocator.allocate(bytes * batch));
      }
      prepare(slot, batch_index++);
    }
  } catch (...) {
    release_memory();
    throw;
  }
}

SlotRing::~SlotRing() { release_memory(); }

void SlotRing::release_memory() {
  for (Slot& slot : slots) {
    for (std::size_t field = 0; field < slot.fields.size(); ++field) {
      allocator.release(slot.fields[field], sample_bytes[field] * static_cast<std::size_t>(plan.batch));
    }
    slot.fields.clear();
  }
}

void SlotRing::prepare(Slot& slot, std::int64_t batch_index) {
  slot.error = nullptr;
  slot.skipped.store(0, std::memory_order_relaxed);
  slot.timing_count = std::max<std::int64_t>(0, plan.end_position(batch_index) - plan.begin_timing(batch_index));
  slot.remaining.store(plan.end_position(batch_index) - plan.begin_position(batch_index), std::memory_order_relaxed);
  slot.batch_index.store(batch_index, std::memory_order_release);
}

bool SlotRing::wait_free(std::int64_t first_batch, std::int64_t last_batch) {
  const auto all_free = [&] {
    for (std::int64_t index = first_batch; index <= last_batch; ++index) {
      if (!is_free_for(index)) {
        return false;
      }
    }
    return true;
  };
  if (all_free()) {
    return true;
  }
  std::unique_lock lock(mutex);
  free_changed.wait(lock, [&] { return closed || all_free(); });
  return !closed;
}

void SlotRing::finish_item(Slot& slot) {
  if (slot.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    // The lock orders this with the waiter's check, so that its wake-up cannot be lost.
    const std::lock_guard lock(mutex);
    complete_changed.notify_one();
  }
}

void SlotRing::fail_item(Slot& slot, std::int64_t position, std::exception_ptr error) {
  const std::lock_guard lock(mutex);
  if (!slot.error || position < slot.error_position) {
    slot.error_position = position;
    slot.error = std::move(error);
  }
}

void SlotRing::wait_complete(Slot& slot) {
  if (slot.remaining.load(std::memory_order_acquire) == 0) {
    return;
  }
  std::unique_lock lock(mutex);
  complete_changed.wait(lock, [&] { return slot.remaining.load(std::memory_order_acquire) == 0; });
}

void SlotRing::give_back(Slot& slot) {
  {
    const std::lock_guard lock(mutex);
    const auto count = static_cast<std::int64_t>(slots.size());
    prepare(slot, slot.batch_index.load(std::memory_order_relaxed) + count);
  }
  free_changed.notify_all();
}

void SlotRing::close() {
  {
    const std::lock_guard lock(mutex);
    closed = true;
  }
  free_changed.notify_all();
}

}  // namespace unidle::data::detail
