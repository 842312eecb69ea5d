// Locks across processes, one per key and a few for the whole cache, as byte ranges of one file.
#pragma once

#include <filesystem>
#include <functional>

#include "unidle/cache/detail/fork.h"
#include "unidle/cache/key.h"

namespace unidle::cache::detail {

enum class Outcome { kTaken, kBusy, kUnsupported };

/// Locks of one owner on the file at `path`. The kernel releases them when the owner is destroyed or its process ends;
/// a forked child has none of them. Two owners exclude each other, also within a process; one owner does not exclude
/// itself. Needs no file per key and no cleanup. Thread-safe.
class KeyLocks {
 public:
  /// Throws kIo when the file cannot be opened or created.
  explicit KeyLocks(const std::filesystem::path& path);

  Outcome try_lock(const Key& key) { return lock(offset_of(key), false); }
  /// Waits. Calls `stop` whenever a signal interrupts; returns kBusy when it returns true.
  Outcome wait(const Key& key, const std::function<bool()>& stop) { return lock(offset_of(key), true, stop); }
  void unlock(const Key& key) { unlock(offset_of(key)); }

  /// For operations on the whole index.
  Outcome wait_rebuild() { return lock(kRebuild, true); }
  void unlock_rebuild() { unlock(kRebuild); }

 private:
  static constexpr off_t kRebuild = 0;
  static constexpr off_t kFirstKey = 64;

  /// Two keys with the same offset wait for each other, which is harmless; among a million keys none collide.
  static off_t offset_of(const Key& key) {
    return kFirstKey + static_cast<off_t>(key.prefix() & ((std::uint64_t{1} << 62) - 1));
  }
  Outcome lock(off_t at, bool wait, const std::function<bool()>& stop = {});
  void unlock(off_t at);
  /// True in a child, where the descriptor is closed.
  bool forked() const { return generation_ != fork_generation(); }

  UnsharedFd fd_;
  std::uint64_t generation_ = fork_generation();
};

}  // namespace unidle::cache::detail
