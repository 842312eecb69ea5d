// A batch delivered by a loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unidle::data {

struct ItemTiming {
  std::int64_t item = 0;      // the first item
  std::int64_t items = 1;     // number of items made together
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  int thread = 0;  // 0 = the calling thread, 1.. = workers
};

namespace detail {
struct Slot;
}

/// A filled slot, held until destroyed; then the slot returns to the workers. Must not outlive its loader.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();
  /// Number of samples in this batch; less than places() when samples were left out (ErrorPolicy::kSkip).
  std::int64_t samples() const;
  /// Number of samples that this batch covers in the order.
  std::int64_t places() const;
  /// Global number of the first sample, across all ranks: epoch = first_sample() / samples_per_epoch.
  std::int64_t first_sample() const;
  /// The epoch of the first sample, and the number of samples that all ranks deliver before it in that epoch.
  std::int64_t epoch() const;
  std::int64_t epoch_offset() const;
  /// All samples of one field, contiguous: [samples, shape...].
  std::byte* field(std::size_t index) const;
  /// The first extent of a ragged field in this batch: that of its longest sample.
  std::int64_t extent(std::size_t index) const;
  /// The first extent of each sample of a ragged field; the rest, up to extent(), is padding. Empty for other fields.
  std::span<const std::int64_t> extents(std::size_t index) const;
  /// Transfers the memory of all fields to the caller, who must release it to the loader's allocator (sizes:
  /// field_bytes() of the loader). The slot gets new memory; if the allocator throws, the batch is unchanged. Not
  /// thread-safe.
  std::vector<std::byte*> take();
  /// How each item of this batch was made, for the probe.
  std::span<const ItemTiming> timings() const;

 private:
  friend class Loader;
  explicit Batch(detail::Slot* slot);
  detail::Slot* slot_ = nullptr;
};

}  // namespace unidle::data
