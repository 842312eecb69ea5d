// One lock a key across processes, and a few for the cache as a whole: byte ranges of one file.
#pragma once

#include <filesystem>
#include <functional>

#include "unidle/cache/detail/fork.h"
#include "unidle/cache/key.h"

namespace unidle::cache::detail {

enum class Outcome { kTaken, kBusy, kUnsupported };

/// Locks of one owner on the file at `path`. The kernel gives them back when the owner is destroyed, or when its
/// process ends in whatever way; a forked child has none of them. Two owners exclude each other, also in one process;
/// one owner does not exclude itself. No file is left per key and nothing has to be cleaned. Thread-safe.
class KeyLocks {
 public:
  /// Throws kIo when the file cannot be opened or made.
  explicit KeyLocks(const std::filesystem::path& path);

  Outcome try_lock(const Key& key) { return lock(offset_of(key), false); }
  /// Waits. `stop` is asked whenever a signal interrupts; kBusy when it says so.
  Outcome wait(const Key& key, const std::function<bool()>& stop) { return lock(offset_of(key), true, stop); }
  void unlock(const Key& key) { unlock(offset_of(key)); }

  /// For all that is done to the index as a whole.
  Outcome wait_rebuild() { return lock(kRebuild, true); }
  void unlock_rebuild() { unlock(kRebuild); }

 private:
  static constexpr off_t kRebuild = 0;
  static constexpr off_t kFirstKey = 64;

  /// Two keys with the same place wait for each other, which does no harm; of a million keys no two have.
  static off_t offset_of(const Key& key) {
    return kFirstKey + static_cast<off_t>(key.prefix() & ((std::uint64_t{1} << 62) - 1));
  }
  Outcome lock(off_t at, bool wait, const std::function<bool()>& stop = {});
  void unlock(off_t at);
  /// In a child, whose descriptor is closed.
  bool forked() const { return generation_ != fork_generation(); }

  UnsharedFd fd_;
  std::uint64_t generation_ = fork_generation();
};

}  // namespace unidle::cache::detail
