// Batches out of a source, in an order that is a pure function of (seed, epoch, index).
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

/// What becomes of an item that is missing or damaged. Lack of memory and errors of the program are never passed over.
/// Whichever it is, all ranks have equally many batches.
enum class ErrorPolicy {
  kFail,     // its batch fails
  kSkip,     // its samples are left out: the batch is shorter; where nothing is left of it, one stands in as below
  kReplace,  // the next item of the order that can be read stands in: batches are as large as without
};

/// What becomes of the samples at the end of an epoch that fill no batch. With several ranks, all have equally many:
/// where the items do not divide, kDrop leaves out the last ones of the order, and the others take the first ones
/// again.
enum class EpochEnd {
  kSpan,   // batches go on into the next epoch
  kShort,  // the last batch of an epoch is shorter
  kDrop,   // they are left out
};

/// As many workers as help, and no more than there are CPUs to use (affinity and quota): they come and go, and so does
/// the number of batches ahead, as the consumer and they have waited for each other.
inline constexpr int kAutoWorkers = -1;

struct LoaderOptions {
  std::int64_t batch = 1;
  int workers = 0;   // 0: items are made in the calling thread, inside next(); or kAutoWorkers
  int prefetch = 2;  // batches ahead per worker, at most; slots = workers * prefetch, at least 2, and more where items
                     // straddle batches
  /// Of all slots together, at most; there are fewer then, but never less than 2. What a caller has taken out of
  /// batches does not count. 0: a quarter of the memory that the process may use.
  std::int64_t max_bytes = 0;
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

/// What the items of the batches delivered so far have cost.
struct LoaderWork {
  std::int64_t samples = 0;
  std::int64_t busy_ns = 0;                      // of all threads that made them
  std::int64_t slowest_ns = 0;                   // of one item
  std::int64_t cpu_ns = 0;                       // of all workers since they began, also for what is not delivered yet
  std::array<std::int64_t, kStages> stage_ns{};  // of all threads since they began, by Stage
};

/// An endless stream of batches: sample s is index s % n of epoch s / n, so that the whole state is one number. Batches
/// span epochs, and no sample is dropped, unless `epoch_end` says otherwise. Delivery order does not depend on the
/// number of workers. Scheduling is per item (or per `grain` of them): a slow item delays only its own batch. No
/// allocation per batch. next() is for one thread.
class Loader {
 public:
  /// Throws kUsage for options that make no sense with the source, `max_bytes` without room for two batches included.
  Loader(const Source& source, const LoaderOptions& options);
  ~Loader();  // stops and joins the workers
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; waits for it. Rethrows what the source threw for the batch that is due, and again at every further
  /// call before pass_over(). Throws kUsage when so many batches are still held that the next one has no slot.
  Batch next();
  /// Skips the batch that next() threw for, so that the next one is due. Returns it for its place in the epoch; its
  /// fields hold nothing of use. Nothing where the batch that is due has not failed.
  std::optional<Batch> pass_over();
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
  /// Items of the batches delivered so far that could not be read, and were left out or replaced. Does not depend on
  /// the number of workers.
  std::int64_t skipped() const;
  /// Threads that there are, and of them those at work now; batches that are made ahead now, at most.
  int workers() const;
  int active_workers() const;
  std::int64_t depth() const;
  /// By the thread that calls next().
  LoaderWork work() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Position `index` of the shuffled order of `n` items: a keyed permutation (Feistel network with cycle walking), O(1).
std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n);

/// The same for each of `indices`, in their place; many at once take half the time.
void shuffle_indices(std::uint64_t seed, std::int64_t epoch, std::int64_t n, std::span<std::int64_t> indices);

}  // namespace unidle::data
