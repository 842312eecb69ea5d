// A cache of decoded pictures with a fixed budget.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data {

/// Caches decoded pictures by number, up to a byte budget, and never evicts: shuffled training visits each picture once
/// per epoch, so eviction would remove pictures that are needed next.
///
/// Thread-safe. Concurrent requests decode a cacheable picture only once; a hit takes no lock.
class PictureCache {
 public:
  /// For pictures 0 to `pictures` - 1. With a budget of 0 nothing is cached.
  PictureCache(std::size_t pictures, std::size_t budget_bytes);

  /// Returns the picture, made by `decode` on a miss. Returns null, without calling `decode`, when it does not fit
  /// (`bytes` is its decoded size). Valid as long as the cache. An exception of `decode` reaches the caller, and the
  /// next call tries again.
  const Picture* get(std::size_t picture, std::size_t bytes, const std::function<Picture()>& decode);

  std::size_t budget_bytes() const { return budget_bytes_; }
  /// Bytes held, or reserved for pictures being decoded.
  std::size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const Picture*> ready{nullptr};
    std::unique_ptr<const Picture> owned;  // guarded by mutex_, like busy
    bool busy = false;
  };

  /// Waits while another thread decodes. Returns the picture, or null when the caller must decode it.
  const Picture* claim(Entry& entry);
  bool reserve(std::size_t bytes);

  std::size_t budget_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
  std::vector<Entry> entries_;
  std::mutex mutex_;
  std::condition_variable done_;
};

}  // namespace unidle::data
