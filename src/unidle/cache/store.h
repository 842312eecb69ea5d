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

/// What a put promises when it returns.
enum class Durability {
  kPower,    // the entry is there after a power failure
  kProcess,  // it is there after any process was killed; after a power failure it may be missing, but never wrong
};

struct Options {
  std::filesystem::path path;
  /// The most that the blobs may take together. Kept with the cache; when it is not given, what was given last holds,
  /// and a new cache has no bound.
  std::optional<std::uint64_t> max_bytes;
  Durability durability = Durability::kPower;
  /// False: the cache must be there.
  bool create = true;
  /// Nothing of it is changed, and it must be there.
  bool read_only = false;
  /// Memory for entries that this process keeps mapped; with a bound, at most a sixteenth of it.
  std::uint64_t hot_bytes = 256 << 20;
  std::size_t hot_entries = 16384;
  Disk* disk = nullptr;    // the real one
  Clock* clock = nullptr;  // the real one
  /// Told once of each kind of trouble that it goes on in spite of; a line on stderr by default.
  std::function<void(std::string_view)> tell;
};

/// The right to compute the entry of one key. Nobody else has it, in whatever process, until this is destroyed or its
/// process ends.
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

/// An entry that is to be stored.
struct NewEntry {
  Key key;
  std::vector<TensorView> tensors;  // of arrays that lie elsewhere
};

struct Statistics {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> max_bytes;
  std::uint64_t named = 0;  // entries that keep a name (blob.h)
};

struct Verified {
  std::uint64_t checked = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;
  std::uint64_t set_aside = 0;  // of the damaged; the others could not be moved
};

struct Pruned {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;    // files of damaged/ that were removed
  std::uint64_t left_over = 0;  // temporary files of processes that were killed, and indexes of earlier versions
};

/// A cache in a folder. Any number of processes and threads may use it at once. After a fork both sides may go on. What
/// goes wrong with the disk is told once and costs only the caching: the answer is computed.
class Store {
 public:
  /// Throws kUsage when the path is a file or a cache of a later format, kInput when it is to be read only and is none.
  explicit Store(Options options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::optional<Entry> get(const Key& key);
  /// The same for a walk over all entries: it counts as no use, and nothing is kept mapped.
  std::optional<Entry> peek(const Key& key);
  bool contains(const Key& key);
  /// Stores the entry, in place of what was there. What comes back has the arrays in memory, and says whether they were
  /// stored.
  Entry put(const Key& key, std::vector<Tensor> tensors);
  /// Stores them all, each as put() does, with one wait for the disk for many of them; how many were stored. Of entries
  /// of one key the last stays. Throws kUsage when one is no entry; those before it may be stored.
  std::size_t put_many(std::span<const NewEntry> entries);
  /// The same for those who must not wait long: stores the first of them, some hundred at most, up to one whose key
  /// somebody is computing. How many it got through, and of these how many were stored.
  struct Got {
    std::size_t through = 0;
    std::size_t stored = 0;
  };
  Got try_put_many(std::span<const NewEntry> entries);
  /// Removes the entry; readers keep theirs. False when there was none.
  bool erase(const Key& key);

  /// The entry; computed by `compute` when there is none. However many ask at once, in whatever processes, one computes
  /// and the others wait for it. When it fails or its process dies, the next one computes. What `compute` throws goes
  /// to its caller alone. `compute` must not ask for its own key.
  Entry get_or_compute(const Key& key, const std::function<std::vector<Tensor>()>& compute);

  /// The parts of that, for those who compute many at a time: to be free of deadlocks, wait for no claim while holding
  /// one. Nothing when somebody else has it.
  std::optional<Claim> try_claim(const Key& key);
  Claim claim(const Key& key);
  /// For the holder of the key's claim.
  Entry put(const Claim& claim, std::vector<Tensor> tensors);
  /// Of arrays that lie elsewhere, without a copy. False when they could not be stored.
  bool put(const Claim& claim, std::span<const TensorView> tensors);

  /// The parts that a walk over all entries has.
  static constexpr std::size_t kParts = 256;
  /// Those of a part, in no order; what others put or erase meanwhile may be among them.
  std::vector<Key> keys(std::size_t part);

  /// At once, out of the index: an entry whose file somebody took away, or whose writer was killed before it was there,
  /// counts until verify() or prune(). Where nothing can be written, by looking at every file.
  Statistics statistics();
  /// Reads every entry, sets the damaged ones aside, and puts the index right. `progress` gets entries and bytes so
  /// far.
  Verified verify(std::stop_token stop = {}, const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});
  /// Evicts until at most `max_bytes` are left (the cache's own bound when not given), and removes what is of no use.
  Pruned prune(std::optional<std::uint64_t> max_bytes = std::nullopt);

  const std::filesystem::path& path() const { return options_.path; }
  /// Where the blob of the key is, or would be.
  std::filesystem::path file_of(const Key& key);

 private:
  std::shared_ptr<detail::State> state();

  Options options_;
  std::mutex renewing_;  // taken in children only, so that no fork finds it taken
  std::shared_ptr<detail::State> state_;
  std::atomic<std::uint64_t> generation_;
};

/// $UNIDLE_CACHE when it is set, otherwise "cache" in .unidle.
std::filesystem::path default_folder();

}  // namespace unidle::cache
