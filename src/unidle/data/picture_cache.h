// Decoded pictures, kept as long as they fit.
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

/// Keeps decoded pictures under a byte budget, by number. What is in stays in: shuffled training visits every picture
/// once an epoch, where eviction would throw out the very pictures that come next, and a fixed part is the best one can
/// keep.
///
/// Thread-safe. A picture that fits is decoded once, however many threads ask at the same time; a hit takes no lock.
class PictureCache {
 public:
  /// For pictures 0 to `pictures` - 1. A budget of 0 keeps nothing.
  PictureCache(std::size_t pictures, std::size_t budget_bytes);

  /// The picture, made by `decode` when it is not there yet; null when it would not fit (`bytes` is its decoded size),
  /// and then `decode` was not called. Valid as long as the cache. An exception of `decode` reaches the caller, and the
  /// next one to ask tries again.
  const Picture* get(std::size_t picture, std::size_t bytes, const std::function<Picture()>& decode);

  std::size_t budget_bytes() const { return budget_bytes_; }
  /// Held or promised to pictures being decoded.
  std::size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const Picture*> ready{nullptr};
    std::unique_ptr<const Picture> owned;  // guarded by mutex_, as is busy
    bool busy = false;
  };

  /// Waits for others; the picture, or null when the caller is to decode it.
  const Picture* claim(Entry& entry);
  bool reserve(std::size_t bytes);

  std::size_t budget_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
  std::vector<Entry> entries_;
  std::mutex mutex_;
  std::condition_variable done_;
};

}  // namespace unidle::data
