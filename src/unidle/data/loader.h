// Delivers batches from a source in an order that is a pure function of (seed, epoch, index).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "unidle/data/batch.h"
#include "unidle/data/order.h"
#include "unidle/data/slot_allocator.h"
#include "unidle/data/source.h"
#include "unidle/data/stage.h"

namespace unidle::data {

/// How to handle a missing or damaged item. Out-of-memory and program errors are always reported. All ranks deliver the
/// same number of batches under every policy.
enum class ErrorPolicy {
  kFail,     // its batch fails
  kSkip,     // its samples are left out and the batch is shorter; an empty batch gets a replacement as below
  kReplace,  // the next readable item of the order replaces it; batches keep their size
};

/// How to handle samples at the end of an epoch that do not fill a batch. All ranks deliver the same number: when the
/// items do not divide evenly, kDrop leaves out the last items of the order, and the other policies repeat the first
/// ones.
enum class EpochEnd {
  kSpan,   // batches continue into the next epoch
  kShort,  // the last batch of an epoch is shorter
  kDrop,   // the samples are left out
};

/// As many workers as help, at most the usable CPUs (affinity and quota). Their number and the prefetch depth adapt to
/// how long consumer and workers wait for each other.
inline constexpr int kAutoWorkers = -1;

struct LoaderOptions {
  std::int64_t batch = 1;
  int workers = 0;  // 0: next() makes the items in the calling thread; or kAutoWorkers
  /// Maximum of batches ahead per worker; slots = workers * prefetch, at least 2, more if items span batches.
  int prefetch = 2;
  /// Limit for all slots together: fewer slots are used to stay below it, but at least 2. Memory taken out of batches
  /// does not count. 0: a quarter of the memory that the process may use.
  std::int64_t max_bytes = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::int64_t start_sample = 0;  // resume: samples already delivered on all ranks, epoch * samples per epoch + offset
  EpochEnd epoch_end = EpochEnd::kSpan;
  /// This rank delivers item rank, rank + world, ... of each epoch's order, which does not depend on `world`.
  int rank = 0;
  int world = 1;
  ErrorPolicy on_error = ErrorPolicy::kFail;
  const Order* order = nullptr;        // instead of the built-in order; must outlive the loader
  SlotAllocator* allocator = nullptr;  // host_allocator() when null; must outlive the loader
};

/// The cost of the items in the batches delivered so far.
struct LoaderWork {
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;                      // of all threads that made them
  std::int64_t slowest_ns = 0;                   // of one item
  std::int64_t cpu_ns = 0;                       // of all workers since they started, including undelivered work
  std::array<std::int64_t, kStages> stage_ns{};  // of all threads since they started, by Stage
};

/// An endless stream of batches: sample s is index s % n of epoch s / n, so one number is the whole state. Batches span
/// epochs and no sample is dropped, unless `epoch_end` says otherwise. The order of delivery does not depend on the
/// number of workers. Scheduling is per item (or per `grain` items): a slow item delays only its own batch. Does not
/// allocate per batch. Call next() from one thread.
class Loader {
 public:
  /// Throws kUsage for options that do not fit the source, or when `max_bytes` is too small for two batches.
  Loader(const Source& source, const LoaderOptions& options);
  ~Loader();  // stops and joins the workers
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Waits for the next batch and returns it. Rethrows the source's exception for this batch, on every call until
  /// pass_over(). Throws kUsage when the caller holds so many batches that the next one has no slot.
  Batch next();
  /// Skips the batch that next() threw for. Returns it for its place in the epoch; its fields are unspecified. Returns
  /// nothing when the next batch has not failed.
  std::optional<Batch> pass_over();
  /// True when next() would not wait; always false without workers.
  bool ready() const;
  /// Waits at most `limit` until next() would not wait; returns whether it would not.
  bool wait(std::chrono::nanoseconds limit);
  /// Across all ranks.
  std::int64_t samples_per_epoch() const;
  /// Of this rank, in a whole epoch and in the first, possibly partial, one; 0 when batches span epochs.
  std::int64_t batches_per_epoch() const;
  std::int64_t batches_in_first_epoch() const;
  /// Bytes of a field in one slot.
  std::size_t field_bytes(std::size_t index) const;
  /// Unreadable items in the batches delivered so far, left out or replaced. Does not depend on the number of workers.
  std::int64_t skipped() const;
  /// Threads in total, threads active now, and the current prefetch limit in batches.
  int workers() const;
  int active_workers() const;
  std::int64_t depth() const;
  /// Call from the thread that calls next().
  LoaderWork work() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Position `index` of the shuffled order of `n` items: a keyed permutation (Feistel network with cycle walking), O(1).
std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n);

/// The same for each of `indices`, in place; many at once take half the time per index.
void shuffle_indices(std::uint64_t seed, std::int64_t epoch, std::int64_t n, std::span<std::int64_t> indices);

}  // namespace unidle::data
