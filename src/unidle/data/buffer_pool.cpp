#include "unidle/data/buffer_pool.h"

#include <unistd.h>

namespace unidle::data {

BufferPool::BufferPool() : process_(::getpid()) {}

BufferPool::~BufferPool() { close(); }

std::byte* BufferPool::allocate(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = idle_.find(bytes);
    if (found != idle_.end() && !found->second.empty()) {
      std::byte* memory = found->second.back();
      found->second.pop_back();
      return memory;
    }
  }
  return host_allocator().allocate(bytes);
}

void BufferPool::release(std::byte* memory, std::size_t bytes) {
  if (::getpid() != process_) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      idle_[bytes].push_back(memory);
      return;
    }
  }
  host_allocator().release(memory, bytes);
}

void BufferPool::discard(std::byte* memory, std::size_t bytes) {
  if (::getpid() == process_) {
    host_allocator().release(memory, bytes);
  }
}

std::size_t BufferPool::idle_bytes() {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [bytes, memories] : idle_) {
    sum += bytes * memories.size();
  }
  return sum;
}

void BufferPool::close() {
  if (::getpid() != process_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [bytes, memories] : idle_) {
    for (std::byte* memory : memories) {
      host_allocator().release(memory, bytes);
    }
  }
  idle_.clear();
}

}  // namespace unidle::data
