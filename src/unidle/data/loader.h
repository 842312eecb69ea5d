// Batches out of a source, in an order that is a pure function of (seed, epoch, index).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unidle/data/order.h"
#include "unidle/data/source.h"

namespace unidle::data {

/// Memory for batch slots; the engine passes one that gives pinned memory. Called once a field and slot, at the start,
/// and for each field that is taken out of a batch.
class SlotAllocator {
 public:
  virtual ~SlotAllocator() = default;
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) = 0;
};
/// Page-aligned host memory.
SlotAllocator& host_allocator();

enum class ErrorPolicy { kFail, kSkip };  // skip: the item is replaced by the next one of the order, and counted

/// What becomes of the samples at the end of an epoch that fill no batch. With several ranks, all have equally many:
/// where the items do not divide, kDrop leaves out the last ones of the order, and the others take the first ones
/// again.
enum class EpochEnd {
  kSpan,   // batches go on into the next epoch
  kShort,  // the last batch of an epoch is shorter
  kDrop,   // they are left out
};

struct LoaderOptions {
  std::int64_t batch = 1;
  int workers = 0;   // 0: items are made in the calling thread, inside next()
  int prefetch = 2;  // batches ahead per worker; slots = workers * prefetch, at least 2, and more
                     // where items straddle batches
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::int64_t start_sample = 0;  // resume: samples already delivered, on all ranks: epoch * samples an epoch + offset
  EpochEnd epoch_end = EpochEnd::kSpan;
  int rank =
      0;  // this one delivers item rank, rank + world, ... of each epoch's order, which is the same for any world
  int world = 1;
  ErrorPolicy on_error = ErrorPolicy::kFail;
  const Order* order = nullptr;        // instead of each item once, shuffled or not; must outlive the loader
  SlotAllocator* allocator = nullptr;  // host_allocator() when null; must outlive the loader
};

struct ItemTiming {
  std::int64_t item = 0;      // the first one
  std::int64_t items = 1;     // that were made at once
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  int thread = 0;  // 0 = the calling thread, 1.. = workers
};

/// What making an item consists of.
enum class Stage {
  kRead,     // bytes out of files
  kDecode,   // pictures out of bytes
  kAugment,  // turning, resizing, colours, normalising
  kGather,   // all else: copying into the batch, with what memory-mapped files bring in meanwhile
};
inline constexpr std::size_t kStages = 4;

/// What the items of the batches delivered so far have cost.
struct LoaderWork {
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;                      // of all threads that made them
  std::int64_t slowest_ns = 0;                   // of one item
  std::int64_t cpu_ns = 0;                       // of all workers since they began, also for what is not delivered yet
  std::array<std::int64_t, kStages> stage_ns{};  // of all threads since they began, by Stage
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
  /// Global number of the first sample, on all ranks together: epoch = first_sample() / samples_per_epoch.
  std::int64_t first_sample() const;
  /// The epoch of the first sample, and how many samples all ranks deliver before it in that epoch.
  std::int64_t epoch() const;
  std::int64_t epoch_offset() const;
  /// All samples of one field, one after the other: [samples, shape...].
  std::byte* field(std::size_t index) const;
  /// The first extent of a ragged field in this batch: of its longest sample.
  std::int64_t extent(std::size_t index) const;
  /// The memory of a field, now the caller's, who gives it back to the loader's allocator (field_bytes() of the
  /// loader). The slot gets other memory. Not from several threads at once.
  std::byte* take(std::size_t index);
  /// How each item of this batch was made, for the probe.
  std::span<const ItemTiming> timings() const;

 private:
  friend class Loader;
  explicit Batch(detail::Slot* slot);
  detail::Slot* slot_ = nullptr;
};

/// An endless stream of batches: sample s is index s % n of epoch s / n, so that the whole state is one number. Batches
/// span epochs, and no sample is dropped, unless `epoch_end` says otherwise. Delivery order does not depend on the
/// number of workers. Scheduling is per item (or per `grain` of them): a slow item delays only its own batch. No
/// allocation per batch. next() is for one thread.
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
  /// Waits until next() would not wait, for so long at most; whether it would not.
  bool wait(std::chrono::nanoseconds limit);
  /// Of all ranks.
  std::int64_t samples_per_epoch() const;
  /// Of this rank, in a whole epoch and in the one that it starts in; 0 where batches span epochs.
  std::int64_t batches_per_epoch() const;
  std::int64_t batches_in_first_epoch() const;
  /// What a slot holds of a field.
  std::size_t field_bytes(std::size_t index) const;
  /// Items of the batches delivered so far that another one stands in for. Does not depend on the number of workers.
  std::int64_t skipped() const;
  /// By the thread that calls next().
  LoaderWork work() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Position `index` of the shuffled order of `n` items: a keyed permutation (Feistel network with cycle walking), O(1).
std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n);

}  // namespace unidle::data
