#include "unidle/data/detail/slot_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "unidle/base/clock.h"

namespace unidle::data::detail {

void Slot::Failure::keep(std::int64_t of, std::exception_ptr what) {
  if (!error || of < position) {
    position = of;
    error = std::move(what);
  }
}

SlotRing::SlotRing(const Plan& the_plan, const std::vector<Field>& the_fields, std::int64_t count,
                   SlotAllocator& memory, ExtentOf extent_of)
    : plan(the_plan),
      fields(the_fields),
      allocator(memory),
      slots(static_cast<std::size_t>(count)),
      extent_of_(std::move(extent_of)),
      depth_(count) {
  const auto batch = static_cast<std::size_t>(plan.batch());
  try {
    spare_.reserve(slots.size());
    for (Slot& slot : slots) {
      slot.ring = this;
      slot.timings.resize(static_cast<std::size_t>(plan.most_timings()));
      slot.sample_bytes.resize(fields.size());
      slot.left_out.resize(batch);
      for (const Field& field : fields) {
        slot.extents.emplace_back(field.ragged ? batch : 0);
      }
      spare_.push_back(allocate());
    }
    open_more();
  } catch (...) {
    release_all();
    throw;
  }
}

SlotRing::~SlotRing() { release_all(); }

std::size_t SlotRing::memory_bytes(std::size_t field) const {
  return fields[field].bytes() * static_cast<std::size_t>(plan.batch());
}

SlotRing::Memory SlotRing::allocate() const {
  Memory memory;
  memory.reserve(fields.size());
  try {
    for (std::size_t field = 0; field < fields.size(); ++field) {
      memory.push_back(allocator.allocate(memory_bytes(field)));
    }
  } catch (...) {
    release(memory);
    throw;
  }
  return memory;
}

void SlotRing::release(Memory& memory) const {
  for (std::size_t field = 0; field < memory.size(); ++field) {
    allocator.release(memory[field], memory_bytes(field));
  }
  memory.clear();
}

void SlotRing::discard(Memory& memory) const {
  for (std::size_t field = 0; field < memory.size(); ++field) {
    allocator.discard(memory[field], memory_bytes(field));
  }
  memory.clear();
}

bool SlotRing::add_memory() {
  try {
    spare_.push_back(allocate());
    return true;
  } catch (...) {
    return false;
  }
}

void SlotRing::release_all() {
  for (Slot& slot : slots) {
    release(slot.fields);
  }
  for (Memory& memory : spare_) {
    release(memory);
  }
}

bool SlotRing::open_more() {
  bool more = false;
  for (std::int64_t next = opened_.load(std::memory_order_relaxed);
       next - delivered_ < depth_ && slot(next).idle && !spare_.empty(); ++next) {
    open(slot(next), next);
    opened_.store(next + 1, std::memory_order_release);
    more = true;
  }
  return more;
}

void SlotRing::open(Slot& slot, std::int64_t batch_index) {
  slot.fields = std::move(spare_.back());
  spare_.pop_back();
  slot.idle = false;
  slot.batch_index = batch_index;
  slot.failed.error = nullptr;
  slot.skipped.store(0, std::memory_order_relaxed);
  if (slot.left_out_count.exchange(0, std::memory_order_relaxed) > 0) {
    std::fill(slot.left_out.begin(), slot.left_out.end(), std::uint8_t{0});
    slot.without_a_sample.error = nullptr;
  }
  slot.samples = plan.samples(batch_index);
  for (std::size_t field = 0; field < fields.size(); ++field) {
    slot.sample_bytes[field] =
        fields[field].ragged ? fields[field].row_bytes() * static_cast<std::size_t>(extent_of_(batch_index, field))
                             : fields[field].bytes();
  }
  slot.timing_count = plan.timings(batch_index);
  slot.remaining.store(plan.end_position(batch_index) - plan.begin_position(batch_index) + 1,
                       std::memory_order_relaxed);
}

bool SlotRing::wait_open(std::int64_t batch_index, WaitSum& waits) {
  if (closed_.load(std::memory_order_acquire)) {
    return false;
  }
  if (is_open(batch_index)) {
    return true;
  }
  waits.begin(system_clock().now_ns());
  {
    std::unique_lock lock(mutex_);
    opened_changed_.wait(lock, [&] { return closed_.load(std::memory_order_relaxed) || is_open(batch_index); });
  }
  waits.end(system_clock().now_ns());
  return !closed_.load(std::memory_order_relaxed);
}

bool SlotRing::count_items(Slot& slot, std::int64_t count) {
  return slot.remaining.fetch_sub(count, std::memory_order_acq_rel) == count + 1;
}

void SlotRing::complete(Slot& slot) {
  if (slot.left_out_count.load(std::memory_order_relaxed) > 0) {
    close_up(slot);
  }
  slot.remaining.store(0, std::memory_order_release);
  // The lock orders this with the waiter's check, so that the wake-up is not lost.
  const std::lock_guard lock(mutex_);
  complete_changed_.notify_one();
}

void SlotRing::close_up(Slot& slot) {
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < slot.samples; ++row) {
    if (slot.left_out[static_cast<std::size_t>(row)] != 0) {
      continue;
    }
    if (kept < row) {
      for (std::size_t field = 0; field < slot.fields.size(); ++field) {
        const std::size_t bytes = slot.sample_bytes[field];
        std::memcpy(slot.fields[field] + static_cast<std::size_t>(kept) * bytes,
                    slot.fields[field] + static_cast<std::size_t>(row) * bytes, bytes);
        if (std::vector<std::int64_t>& extents = slot.extents[field]; !extents.empty()) {
          extents[static_cast<std::size_t>(kept)] = extents[static_cast<std::size_t>(row)];
        }
      }
    }
    ++kept;
  }
  slot.samples = kept;
  if (kept == 0 && !slot.failed.error) {
    slot.failed = slot.without_a_sample;
  }
}

void SlotRing::fail_item(Slot& slot, std::int64_t position, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  slot.failed.keep(position, std::move(error));
}

void SlotRing::leave_out(Slot& slot, std::int64_t row, std::int64_t position, std::exception_ptr why) {
  slot.left_out[static_cast<std::size_t>(row)] = 1;
  slot.left_out_count.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  slot.without_a_sample.keep(position, std::move(why));
}

bool SlotRing::wait_complete(std::int64_t batch_index, std::optional<std::chrono::nanoseconds> limit) {
  const auto complete = [&] { return is_complete(batch_index); };
  std::unique_lock lock(mutex_);
  if (limit) {
    return complete_changed_.wait_for(lock, *limit, complete);
  }
  complete_changed_.wait(lock, complete);
  return true;
}

void SlotRing::deliver() {
  constexpr std::size_t kSpares = 2;  // for batches that the user holds occasionally
  std::unique_lock lock(mutex_);
  ++delivered_;
  const std::int64_t next = opened_.load(std::memory_order_relaxed);
  if (next - delivered_ < depth_ && slot(next).idle && spare_.empty()) {
    add_memory();  // if this fails, continue with the existing memory
  }
  while (depth_ < count() && spare_.size() > kSpares) {
    discard(spare_.back());
    spare_.pop_back();
  }
  const bool more = open_more();
  lock.unlock();
  if (more) {
    opened_changed_.notify_all();
  }
}

void SlotRing::give_back(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    slot.idle = true;
    ++given_back_;
    spare_.push_back(std::move(slot.fields));
    slot.fields.clear();
    open_more();
  }
  opened_changed_.notify_all();
}

std::int64_t SlotRing::held() {
  const std::lock_guard lock(mutex_);
  return delivered_ - given_back_;
}

void SlotRing::set_depth(std::int64_t depth) {
  const std::lock_guard lock(mutex_);
  depth_ = depth;
}

void SlotRing::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true, std::memory_order_release);
  }
  opened_changed_.notify_all();
}

}  // namespace unidle::data::detail
