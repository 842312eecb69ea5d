// What a loader delivers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unidle::data {

struct ItemTiming {
  std::int64_t item = 0;      // the first one
  std::int64_t items = 1;     // that were made at once
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  int thread = 0;  // 0 = the calling thread, 1.. = workers
};

namespace detail {
struct Slot;
}

/// A filled slot, held until the object dies; then the slot goes back to the workers. Must not outlive its loader.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();
  /// That it holds; fewer than places() where samples were left out (ErrorPolicy::kSkip).
  std::int64_t samples() const;
  /// Samples of the order that it stands for.
  std::int64_t places() const;
  /// Global number of the first sample, on all ranks together: epoch = first_sample() / samples_per_epoch.
  std::int64_t first_sample() const;
  /// The epoch of the first sample, and how many samples all ranks deliver before it in that epoch.
  std::int64_t epoch() const;
  std::int64_t epoch_offset() const;
  /// All samples of one field, one after the other: [samples, shape...].
  std::byte* field(std::size_t index) const;
  /// The first extent of a ragged field in this batch: of the longest sample that it stands for.
  std::int64_t extent(std::size_t index) const;
  /// The first extent of each sample of a ragged field; what lies behind it, up to extent(), is filled up. Empty where
  /// the field is not ragged.
  std::span<const std::int64_t> extents(std::size_t index) const;
  /// The memory of all fields, now the caller's, who gives it back to the loader's allocator (field_bytes() of the
  /// loader). The slot gets other memory; where the allocator throws, the batch keeps what it has. Not from several
  /// threads at once.
  std::vector<std::byte*> take();
  /// How each item of this batch was made, for the probe.
  std::span<const ItemTiming> timings() const;

 private:
  friend class Loader;
  explicit Batch(detail::Slot* slot);
  detail::Slot* slot_ = nullptr;
};

}  // namespace unidle::data
