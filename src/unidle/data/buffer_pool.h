// Memory that goes round: from a loader's slots to whoever takes batches, and back.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "unidle/data/slot_allocator.h"

namespace unidle::data {

/// Page-aligned host memory, kept for the next one who asks for as much. It holds no more than was in use at once, and
/// nothing after close(); what is discarded is freed. Whoever has memory of it keeps the pool alive (by shared_ptr).
/// Thread-safe. In a process that was forked from its own, release() does nothing: the lock may be held by a thread
/// that is not there.
class BufferPool final : public SlotAllocator {
 public:
  BufferPool();
  ~BufferPool() override;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) override;
  void discard(std::byte* memory, std::size_t bytes) override;
  /// What is given back from now on is freed.
  void close();
  /// That it keeps for the next ones.
  std::size_t idle_bytes();

 private:
  const int process_;
  std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<std::size_t, std::vector<std::byte*>> idle_;  // by size
};

}  // namespace unidle::data
