// Memory that goes round: from a loader's slots to whoever takes batches, and back.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "unidle/data/slot_allocator.h"

namespace unidle::data {

/// Page-aligned host memory, kept for the next one who asks for as much. It holds no more than was in use at once, and
/// nothing after close(); what is discarded is freed. Whoever has memory of it keeps the pool alive (by shared_ptr).
/// Thread-safe. In a process that was forked from its own, release() does nothing: the lock may be held by a thread
/// that is not there.
///
/// A lender's memory is taken before the host's own, and stays the lender's: it is never freed, and goes round until
/// close() even where it is discarded, since page-locked memory is dear to get and to free.
class BufferPool final : public SlotAllocator {
 public:
  /// Null where there is none: the host's own is taken then. Called by allocate(), without the lock.
  using Lender = void* (*)(std::size_t bytes);

  explicit BufferPool(Lender lender = nullptr);
  ~BufferPool() override;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) override;
  void discard(std::byte* memory, std::size_t bytes) override;
  /// Of a lender's memory 2 GiB: it is taken from all programs of the machine.
  std::uint64_t most_bytes() const override;
  /// Whether the memory is lent; then it is the lender's again, as if it had never been allocated.
  bool take_back(std::byte* memory);
  /// What is given back from now on is freed.
  void close();
  /// That it keeps for the next ones.
  std::size_t idle_bytes();

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
