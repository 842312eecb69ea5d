#include "unidle/data/picture_cache.h"

#include <utility>

namespace unidle::data {

PictureCache::PictureCache(std::size_t pictures, std::size_t budget_bytes)
    : budget_bytes_(budget_bytes), entries_(budget_bytes == 0 ? 0 : pictures) {}

bool PictureCache::reserve(std::size_t bytes) {
  std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_bytes_ - used) {
      return false;
    }
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

const Picture* PictureCache::claim(Entry& entry) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return !entry.busy; });
  if (!entry.owned) {
    entry.busy = true;
  }
  return entry.owned.get();
}

const Picture* PictureCache::get(std::size_t picture, std::size_t bytes, const std::function<Picture()>& decode) {
  if (entries_.empty()) {
    return nullptr;
  }
  Entry& entry = entries_.at(picture);
  if (const Picture* ready = entry.ready.load(std::memory_order_acquire)) {
    return ready;
  }
  if (const Picture* made = claim(entry)) {
    return made;
  }
  std::unique_ptr<const Picture> made;
  const auto settle = [&] {
    {
      const std::lock_guard lock(mutex_);
      entry.busy = false;
      entry.owned = std::move(made);
      entry.ready.store(entry.owned.get(), std::memory_order_release);
    }
    done_.notify_all();
  };
  if (!reserve(bytes)) {
    settle();
    return nullptr;
  }
  try {
    made = std::make_unique<const Picture>(decode());
  } catch (...) {
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    settle();
    throw;
  }
  settle();
  return entry.ready.load(std::memory_order_acquire);
}

}  // namespace unidle::data
