#include "unidle/data/detail/slot_ring.h"

#include <utility>

namespace unidle::data::detail {

SlotRing::SlotRing(const Plan& the_plan, const std::vector<Field>& the_fields, std::int64_t count,
                   SlotAllocator& memory, ExtentOf extent_of)
    : plan(the_plan),
      fields(the_fields),
      allocator(memory),
      slots(static_cast<std::size_t>(count)),
      extent_of_(std::move(extent_of)) {
  try {
    std::int64_t batch_index = 0;
    for (Slot& slot : slots) {
      slot.ring = this;
      slot.timings.resize(static_cast<std::size_t>(plan.most_timings()));
      slot.sample_bytes.resize(fields.size());
      slot.fields.reserve(fields.size());
      for (std::size_t field = 0; field < fields.size(); ++field) {
        slot.fields.push_back(allocator.allocate(memory_bytes(field)));
      }
      prepare(slot, batch_index++);
    }
  } catch (...) {
    release_memory();
    throw;
  }
}

SlotRing::~SlotRing() { release_memory(); }

std::size_t SlotRing::memory_bytes(std::size_t field) const {
  return fields[field].bytes() * static_cast<std::size_t>(plan.batch());
}

void SlotRing::release_memory() {
  for (Slot& slot : slots) {
    for (std::size_t field = 0; field < slot.fields.size(); ++field) {
      allocator.release(slot.fields[field], memory_bytes(field));
    }
    slot.fields.clear();
  }
}

void SlotRing::prepare(Slot& slot, std::int64_t batch_index) {
  slot.error = nullptr;
  slot.skipped.store(0, std::memory_order_relaxed);
  slot.samples = plan.samples(batch_index);
  for (std::size_t field = 0; field < fields.size(); ++field) {
    slot.sample_bytes[field] =
        fields[field].ragged ? fields[field].row_bytes() * static_cast<std::size_t>(extent_of_(batch_index, field))
                             : fields[field].bytes();
  }
  slot.timing_count = plan.timings(batch_index);
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

void SlotRing::finish_items(Slot& slot, std::int64_t count) {
  if (slot.remaining.fetch_sub(count, std::memory_order_acq_rel) == count) {
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

bool SlotRing::wait_complete(Slot& slot, std::chrono::nanoseconds limit) {
  const auto complete = [&] { return slot.remaining.load(std::memory_order_acquire) == 0; };
  if (complete()) {
    return true;
  }
  std::unique_lock lock(mutex);
  return complete_changed.wait_for(lock, limit, complete);
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
