// State that all processes of a cache share at the cost of a memory access: a small mapped file.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "unidle/cache/key.h"

namespace unidle::cache::detail {

/// Counters by key. They are hints: two keys may share one, and a lost file only resets them. If the file cannot be
/// mapped, they are private to the process. Thread-safe.
class Board {
 public:
  explicit Board(const std::filesystem::path& path);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Counts a read of the entry.
  void count_hit(const Key& key);
  /// Returns 0 to 3.
  unsigned hits(const Key& key) const;
  void set_hits(const Key& key, unsigned hits);

  /// Changes whenever the key's entry is replaced or removed.
  std::uint32_t generation(const Key& key) const {
    return generations_[generation_slot(key)].load(std::memory_order_acquire);
  }
  void bump_generation(const Key& key) { generations_[generation_slot(key)].fetch_add(1, std::memory_order_acq_rel); }

  /// Changes whenever eviction met held entries: release those kept only for speed.
  std::uint32_t pressure() const { return pressure_->load(std::memory_order_relaxed); }
  void raise_pressure() { pressure_->fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kGenerations = 1 << 16;
  static constexpr std::size_t kHits = 1 << 22;
  static constexpr std::size_t kHead = 4096;
  static constexpr std::size_t kBytes = kHead + kGenerations * sizeof(std::uint32_t) + kHits;
  static constexpr unsigned kMostHits = 3;

  static std::size_t generation_slot(const Key& key) { return key.prefix() % kGenerations; }
  static std::size_t hit_slot(const Key& key) { return (key.prefix() >> 20) % kHits; }

  void* memory_ = nullptr;
  std::atomic<std::uint32_t>* pressure_ = nullptr;
  std::atomic<std::uint32_t>* generations_ = nullptr;
  std::atomic<std::uint8_t>* hits_ = nullptr;
};

}  // namespace unidle::cache::detail
