#include "unidle/data/buffer_pool.h"

#include <unistd.h>

namespace unidle::data {

namespace {
constexpr std::uint64_t kMostLentBytes = 2ULL << 30;
}  // namespace

BufferPool::BufferPool(Lender lender) : process_(::getpid()), lender_(lender) {}

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
  auto* lent = lender_ != nullptr ? static_cast<std::byte*>(lender_(bytes)) : nullptr;
  if (lent == nullptr) {
    return host_allocator().allocate(bytes);
  }
  const std::lock_guard lock(mutex_);
  lent_.insert(lent);
  return lent;
}

void BufferPool::release(std::byte* memory, std::size_t bytes) {
  if (::getpid() != process_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (closed_) {
    free(memory, bytes);
  } else {
    idle_[bytes].push_back(memory);
  }
}

void BufferPool::discard(std::byte* memory, std::size_t bytes) {
  if (::getpid() != process_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!closed_ && lent_.contains(memory)) {
    idle_[bytes].push_back(memory);
  } else {
    free(memory, bytes);
  }
}

bool BufferPool::take_back(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  return lent_.erase(memory) > 0;
}

std::uint64_t BufferPool::most_bytes() const { return lender_ != nullptr ? kMostLentBytes : UINT64_MAX; }

void BufferPool::free(std::byte* memory, std::size_t bytes) {
  if (!lent_.contains(memory)) {
    host_allocator().release(memory, bytes);
  }
}

void BufferPool::close() {
  if (::getpid() != process_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [bytes, memories] : idle_) {
    for (std::byte* memory : memories) {
      free(memory, bytes);
    }
  }
  idle_.clear();
}

}  // namespace unidle::data
