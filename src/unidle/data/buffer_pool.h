// Recycles memory between a loader's slots and the callers that take batches.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "unidle/data/slot_allocator.h"

namespace unidle::data {

/// Page-aligned host memory, kept for the next allocation of the same size. Holds at most the peak of memory in use,
/// and nothing after close(); discarded memory is freed. Users of its memory keep the pool alive (shared_ptr).
/// Thread-safe. In a forked child, release() does nothing: a thread that does not exist there may hold the lock.
///
/// Memory from a lender is preferred to host memory and stays the lender's: it is never freed, and is reused until
/// close() even when discarded, because page-locked memory is expensive to allocate and free.
class BufferPool final : public SlotAllocator {
 public:
  /// Returns null when it has no memory; host memory is used instead. Called by allocate(), without the lock.
  using Lender = void* (*)(std::size_t bytes);

  explicit BufferPool(Lender lender = nullptr);
  ~BufferPool() override;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) override;
  void discard(std::byte* memory, std::size_t bytes) override;
  /// 2 GiB of a lender's memory: page-locked memory is unavailable to all other programs.
  std::uint64_t most_bytes() const override;
  /// Returns true when the memory is lent; it is then the lender's again, as if never allocated.
  bool take_back(std::byte* memory);
  /// From now on, released memory is freed.
  void close();

 private:
  void free(std::byte* memory, std::size_t bytes);

  const int process_;
  const Lender lender_;
  std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<std::size_t, std::vector<std::byte*>> idle_;  // by size
  std::unordered_set<std::byte*> lent_;
};

}  // namespace unidle::data
