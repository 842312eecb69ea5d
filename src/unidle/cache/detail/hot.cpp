#include "unidle/cache/detail/hot.h"

#include <algorithm>

namespace unidle::cache::detail {

HotEntries::HotEntries(std::uint64_t max_bytes, std::size_t max_entries)
    : shard_bytes_(max_bytes / kShards), shard_entries_(std::max<std::size_t>(max_entries / kShards, 1)) {}

void HotEntries::erase(Shard& shard, std::list<Slot>::iterator slot) {
  shard.bytes -= slot->entry.bytes();
  shard.by_key.erase(slot->key);
  shard.slots.erase(slot);
}

std::optional<Entry> HotEntries::find(const Key& key, std::uint32_t generation) {
  Shard& shard = shard_of(key);
  const std::scoped_lock lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) {
    return std::nullopt;
  }
  if (found->second->generation != generation) {
    erase(shard, found->second);
    return std::nullopt;
  }
  found->second->used = true;
  return found->second->entry;
}

void HotEntries::insert(const Key& key, const Entry& entry, std::uint32_t generation) {
  if (entry.bytes() > shard_bytes_) {
    return;
  }
  Shard& shard = shard_of(key);
  const std::scoped_lock lock(shard.mutex);
  if (const auto found = shard.by_key.find(key); found != shard.by_key.end()) {
    erase(shard, found->second);
  }
  while (!shard.slots.empty() && (shard.bytes + entry.bytes() > shard_bytes_ || shard.slots.size() >= shard_entries_)) {
    const auto oldest = shard.slots.begin();
    if (oldest->used) {
      oldest->used = false;
      shard.slots.splice(shard.slots.end(), shard.slots, oldest);
    } else {
      erase(shard, oldest);
    }
  }
  shard.slots.push_back({key, entry, generation, false});
  shard.by_key.emplace(key, std::prev(shard.slots.end()));
  shard.bytes += entry.bytes();
}

void HotEntries::release() {
  for (Shard& shard : shards_) {
    const std::scoped_lock lock(shard.mutex);
    for (auto slot = shard.slots.begin(); slot != shard.slots.end();) {
      const auto next = std::next(slot);
      if (slot->entry.sole_owner()) {
        erase(shard, slot);
      }
      slot = next;
    }
  }
}

}  // namespace unidle::cache::detail
