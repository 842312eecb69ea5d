// Keeps recently read entries mapped: opening a file takes ten times as long as a lookup here.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "unidle/cache/entry.h"
#include "unidle/cache/key.h"

namespace unidle::cache::detail {

/// Bounded by bytes and by number; evicts with CLOCK. Thread-safe.
class HotEntries {
 public:
  HotEntries(std::uint64_t max_bytes, std::size_t max_entries);

  /// Nothing when it is absent or was inserted under another generation.
  std::optional<Entry> find(const Key& key, std::uint32_t generation);
  void insert(const Key& key, const Entry& entry, std::uint32_t generation);
  /// Releases everything that nobody else holds.
  void release();

 private:
  static constexpr std::size_t kShards = 16;
  struct Slot {
    Key key;
    Entry entry;
    std::uint32_t generation = 0;
    bool used = false;
  };
  struct Shard {
    std::mutex mutex;
    std::list<Slot> slots;  // the front is evicted next
    std::unordered_map<Key, std::list<Slot>::iterator> by_key;
    std::uint64_t bytes = 0;
  };

  Shard& shard_of(const Key& key) { return shards_[key.bytes[31] % kShards]; }
  static void erase(Shard& shard, std::list<Slot>::iterator slot);

  std::uint64_t shard_bytes_;
  std::size_t shard_entries_;
  std::array<Shard, kShards> shards_;
};

}  // namespace unidle::cache::detail
