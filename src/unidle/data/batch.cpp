#include "unidle/data/batch.h"

#include <utility>
#include <vector>

#include "unidle/data/detail/slot_ring.h"

namespace unidle::data {

Batch::Batch(detail::Slot* slot) : slot_(slot) {}
Batch::Batch(Batch&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    Batch gone(std::move(*this));
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}
Batch::~Batch() {
  if (slot_ != nullptr) {
    slot_->ring->give_back(*slot_);
  }
}

std::int64_t Batch::samples() const { return slot_->samples; }
std::int64_t Batch::places() const { return slot_->ring->plan.samples(slot_->batch_index); }
std::int64_t Batch::epoch() const { return slot_->ring->plan.epoch_of_batch(slot_->batch_index); }
std::int64_t Batch::epoch_offset() const { return slot_->ring->plan.epoch_offset(slot_->batch_index); }
std::int64_t Batch::first_sample() const { return epoch() * slot_->ring->plan.samples_of_source() + epoch_offset(); }
std::byte* Batch::field(std::size_t index) const { return slot_->fields.at(index); }

std::int64_t Batch::extent(std::size_t index) const {
  const Field& field = slot_->ring->fields.at(index);
  return static_cast<std::int64_t>(slot_->sample_bytes.at(index) / field.row_bytes());
}

std::span<const std::int64_t> Batch::extents(std::size_t index) const {
  const std::vector<std::int64_t>& extents = slot_->extents.at(index);
  return extents.empty() ? std::span<const std::int64_t>()
                         : std::span(extents).first(static_cast<std::size_t>(slot_->samples));
}

std::vector<std::byte*> Batch::take() {
  detail::SlotRing& ring = *slot_->ring;
  std::vector<std::byte*> memory(slot_->fields.size());
  std::size_t fresh = 0;
  try {
    for (; fresh < memory.size(); ++fresh) {
      memory[fresh] = ring.allocator.allocate(ring.memory_bytes(fresh));
    }
  } catch (...) {
    while (fresh-- > 0) {
      ring.allocator.release(memory[fresh], ring.memory_bytes(fresh));
    }
    throw;
  }
  memory.swap(slot_->fields);
  return memory;
}

std::span<const ItemTiming> Batch::timings() const {
  return {slot_->timings.data(), static_cast<std::size_t>(slot_->timing_count)};
}

}  // namespace unidle::data
