// Batches out of a source, in an order that is a pure function of (seed, epoch, index).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unidle/data/source.h"

namespace unidle::data {

/// Memory for batch slots; the engine passes one that gives pinned memory. Called once a field and slot, at the start.
class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
};
/// Page-aligned host memory.
SlotAllocator& host_allocator();

enum class ErrorPolicy { kFail, kSkip };  // skip: the item is replaced by the next one of the order, and counted

struct LoaderOptions {
  std::int64_t batch = 1;
  int workers = 0;   // 0: items are made in the calling thread, inside next()
  int prefetch = 2;  // batches ahead per worker; slots = workers * prefetch, at least 2, and more
                     // where items straddle batches
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::int64_t start_sample = 0;  // resume: samples already delivered
  ErrorPolicy on_error = ErrorPolicy::kFail;
  SlotAllocator* allocator = nullptr;  // host_allocator() when null; must outlive the loader
};

struct ItemTiming {
  std::int64_t item = 0;
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
  std::int64_t samples() const;
  /// Global number of the first sample: epoch = first_sample() / samples_per_epoch.
  std::int64_t first_sample() const;
  /// All samples of one field, one after the other: [samples, shape...].
  std::byte* field(std::size_t index) const;
  /// How each item of this batch was made, for the probe.
  std::span<const ItemTiming> timings() const;

 private:
  friend class Loader;
  explicit Batch(detail::Slot* slot);
  detail::Slot* slot_ = nullptr;
};

/// An endless stream of batches: sample s is index s % n of epoch s / n, so that a batch may span two epochs, no sample
/// is dropped, and the whole state is one number. Delivery order does not depend on the number of workers. Scheduling
/// is per item: a slow item delays only its own batch. No allocation per batch. next() is for one thread.
class Loader {
 public:
  Loader(const Source& source, const LoaderOptions& options);
  ~Loader();  // stops and joins the workers
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; waits for it. Rethrows what the source threw for the batch that is due, and again at every further
  /// call. Throws kUsage when so many batches are still held that the next one has no slot.
  Batch next();
  /// Whether next() would return without waiting; never without workers.
  bool ready() const;
  std::int64_t samples_per_epoch() const;
  /// Items of the batches delivered so far that another one stands in for. Does not depend on the number of workers.
  std::int64_t skipped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Position `index` of the shuffled order of `n` items: a keyed permutation (Feistel network with cycle walking), O(1).
std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n);

}  // namespace unidle::data
