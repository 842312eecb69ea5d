#include "unidle/cache/detail/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"

namespace unidle::cache::detail {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint8_t>::is_always_lock_free);

namespace {

/// Returns null when the file cannot be shared. Allocates all blocks at once: on a full disk, writing to a page without
/// one would kill the process.
void* map_shared(const std::filesystem::path& path, std::size_t bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 ||
      (static_cast<std::size_t>(status.st_size) < bytes &&
       ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) != 0)) {
    return nullptr;
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Board::Board(const std::filesystem::path& path) : memory_(map_shared(path, kBytes)) {
  if (memory_ == nullptr) {
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) {
      throw system_error(ErrorCode::kOutOfMemory, path.string(), "cannot be mapped", errno);
    }
  }
  auto* const bytes = static_cast<std::byte*>(memory_);
  pressure_ = reinterpret_cast<std::atomic<std::uint32_t>*>(bytes);
  generations_ = reinterpret_cast<std::atomic<std::uint32_t>*>(bytes + kHead);
  hits_ = reinterpret_cast<std::atomic<std::uint8_t>*>(bytes + kHead + kGenerations * sizeof(std::uint32_t));
}

Board::~Board() { ::munmap(memory_, kBytes); }

void Board::count_hit(const Key& key) {
  auto& slot = hits_[hit_slot(key)];
  // Concurrent increments may get lost, which is harmless: eviction only distinguishes up to three.
  if (const std::uint8_t seen = slot.load(std::memory_order_relaxed); seen < kMostHits) {
    slot.store(static_cast<std::uint8_t>(seen + 1), std::memory_order_relaxed);
  }
}

unsigned Board::hits(const Key& key) const {
  return std::min<unsigned>(hits_[hit_slot(key)].load(std::memory_order_relaxed), kMostHits);
}

void Board::set_hits(const Key& key, unsigned hits) {
  hits_[hit_slot(key)].store(static_cast<std::uint8_t>(hits), std::memory_order_relaxed);
}

}  // namespace unidle::cache::detail
