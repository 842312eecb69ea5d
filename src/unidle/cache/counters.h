// What tells whoever keeps an entry that it got, without a call, whether that is still the one.
#pragma once

#include <atomic>
#include <cstdint>

namespace unidle::cache {

/// Of one key, in memory that all processes at the cache share. Other keys may share `generation` and `hits`.
struct Counters {
  static constexpr unsigned kMostHits = 3;

  /// When it changes, somebody needs room: let go of what is kept for speed alone.
  const std::atomic<std::uint32_t>* pressure = nullptr;
  /// Changes whenever the key is given another entry, or none.
  const std::atomic<std::uint32_t>* generation = nullptr;
  /// Whoever reads what it kept counts that here, up to kMostHits: eviction goes by it.
  std::atomic<std::uint8_t>* hits = nullptr;
};

}  // namespace unidle::cache
