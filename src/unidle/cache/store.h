// The feature cache: expensive results, computed once by whichever process comes first and kept for all.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/disk.h"
#include "unidle/cache/entry.h"
#include "unidle/cache/key.h"

namespace unidle::cache {

namespace detail {
class PutQueue;
class State;
}  // namespace detail

/// The guarantee when put() returns.
enum class Durability {
  kPower,    // the entry survives a power failure
  kProcess,  // survives killed processes; after a power failure it may be missing, but never wrong
};

struct Options {
  std::filesystem::path path;
  /// Maximum total size of the blobs, stored with the cache. By default the last given value applies; a new cache has
  /// none.
  std::optional<std::uint64_t> max_bytes;
  Durability durability = Durability::kPower;
  /// False: the cache must exist.
  bool create = true;
  /// Changes nothing; the cache must exist.
  bool read_only = false;
  /// Bytes of entries that this process keeps mapped; at most a sixteenth of the cache's bound.
  std::uint64_t hot_bytes = 256 << 20;
  std::size_t hot_entries = 16384;
  Disk* disk = nullptr;    // null: the real disk
  Clock* clock = nullptr;  // null: the system clock
  /// Reports each kind of tolerated problem once; by default a line on stderr.
  std::function<void(std::string_view)> tell;
};

/// The right to compute the entry of one key. Exclusive across processes until destroyed or the process ends.
class Claim {
 public:
  Claim(std::shared_ptr<detail::State> state, const Key& key);
  ~Claim();
  Claim(Claim&&) noexcept = default;
  Claim& operator=(Claim&&) = delete;
  const Key& key() const { return key_; }

 private:
  friend class Store;
  friend class detail::PutQueue;
  std::shared_ptr<detail::State> state_;
  Key key_;
  std::uint64_t generation_;  // a forked child has no claims
};

/// An entry to be stored.
struct NewEntry {
  Key key;
  std::vector<TensorView> tensors;  // views of arrays owned elsewhere
};

struct Statistics {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> max_bytes;
  std::uint64_t named = 0;  // entries that contain their name (blob.h)
};

struct Verified {
  std::uint64_t checked = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;
  std::uint64_t set_aside = 0;  // damaged ones that were moved away; the others could not be moved
};

struct Pruned {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;    // files removed from damaged/
  std::uint64_t left_over = 0;  // temporary files of killed processes, and indexes of earlier versions
};

/// A cache in a folder, shared by any number of processes and threads. Both sides may use it after a fork. Disk
/// problems are reported once and only cost the caching: results are still computed.
class Store {
 public:
  /// Throws kUsage when the path is a file or a cache of a later format, kInput when it is read-only and not a cache.
  explicit Store(Options options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::optional<Entry> get(const Key& key);
  /// Like get(), for a walk over all entries: does not count as a use and keeps nothing mapped.
  std::optional<Entry> peek(const Key& key);
  bool contains(const Key& key);
  /// Stores the entry, replacing an existing one. The result has the arrays in memory, and says whether they were
  /// stored.
  Entry put(const Key& key, std::vector<Tensor> tensors);
  /// Stores all entries like put(), waiting for the disk once for many; returns how many were stored. Of entries with
  /// the same key the last one stays. Throws kUsage for an invalid entry; earlier ones may be stored.
  std::size_t put_many(std::span<const NewEntry> entries);
  /// The same for callers that must not wait long: stores only the first entries, about a hundred at most, up to one
  /// whose key somebody is computing. Returns how many it handled and how many of these were stored.
  struct Got {
    std::size_t through = 0;
    std::size_t stored = 0;
  };
  Got try_put_many(std::span<const NewEntry> entries);
  /// Removes the entry; readers keep theirs. Returns false when there was none.
  bool erase(const Key& key);

  /// Returns the entry, computed by `compute` when it is missing. One caller computes, all others wait, across
  /// processes. When it fails or its process dies, the next one computes. An exception of `compute` reaches its own
  /// caller only. `compute` must not request its own key.
  Entry get_or_compute(const Key& key, const std::function<std::vector<Tensor>()>& compute);

  /// Building blocks of get_or_compute() for callers that compute many entries. To avoid deadlocks, do not wait for a
  /// claim while holding one. Returns nothing when somebody else holds the claim.
  std::optional<Claim> try_claim(const Key& key);
  Claim claim(const Key& key);
  /// For the holder of the key's claim.
  Entry put(const Claim& claim, std::vector<Tensor> tensors);
  /// Stores arrays without copying them. Returns false when they could not be stored.
  bool put(const Claim& claim, std::span<const TensorView> tensors);

  /// Number of parts in a walk over all entries.
  static constexpr std::size_t kParts = 256;
  /// The keys of a part, unordered; may include concurrent puts and erasures.
  std::vector<Key> keys(std::size_t part);

  /// Fast, from the index: entries whose file is gone, or whose writer was killed, count until verify() or prune().
  /// Without write permission it looks at every file.
  Statistics statistics();
  /// Reads every entry, sets damaged ones aside, and repairs the index. `progress` receives the entries and bytes so
  /// far.
  Verified verify(std::stop_token stop = {}, const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});
  /// Evicts down to `max_bytes` (default: the cache's bound), and removes useless files.
  Pruned prune(std::optional<std::uint64_t> max_bytes = std::nullopt);

  const std::filesystem::path& path() const { return options_.path; }
  /// Path of the key's blob, whether it exists or not.
  std::filesystem::path file_of(const Key& key);

 private:
  std::shared_ptr<detail::State> state();

  Options options_;
  std::mutex renewing_;  // taken in children only, so no fork can happen while it is held
  std::shared_ptr<detail::State> state_;
  std::atomic<std::uint64_t> generation_;
};

/// $UNIDLE_CACHE if set, otherwise "cache" in .unidle.
std::filesystem::path default_folder();

}  // namespace unidle::cache
