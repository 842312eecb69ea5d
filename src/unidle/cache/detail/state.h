// What one process has open of a cache. A forked child creates its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_set>

#include "unidle/cache/detail/blob_files.h"
#include "unidle/cache/detail/blob_folder.h"
#include "unidle/cache/detail/board.h"
#include "unidle/cache/detail/hot.h"
#include "unidle/cache/detail/index.h"
#include "unidle/cache/detail/key_locks.h"
#include "unidle/cache/store.h"

namespace unidle::cache::detail {

/// An entry to be stored. The arrays are owned elsewhere.
struct Incoming {
  Incoming(const Key& key_of_it, std::span<const TensorView> tensors)
      : key(key_of_it), blob(encode_blob(key_of_it, tensors)) {}
  Key key;
  EncodedBlob blob;
  bool stored = false;
};

/// Thread-safe.
class State {
 public:
  explicit State(const Options& options);

  std::optional<Entry> get(const Key& key);
  std::optional<Entry> peek(const Key& key);
  std::vector<Key> keys(std::size_t part) const;
  /// Maximum that store() takes at once: each needs an open file until it is done.
  static constexpr std::size_t kMostTogether = 128;
  /// For the holder of their claims, which must be of different keys. Stores the first entries, as many as fit
  /// together, with one wait for the disk. Returns their number, at least one unless `entries` is empty.
  std::size_t store(std::span<Incoming> entries);
  bool erase(const Key& key);
  bool exists(const Key& key) const { return files_.exists(key); }
  std::filesystem::path file_of(const Key& key) const { return files_.path(key); }

  bool claim(const Key& key, bool wait);
  void release(const Key& key);

  Statistics statistics();
  Verified verify(std::stop_token stop, const std::function<void(std::uint64_t, std::uint64_t)>& progress);
  Pruned prune(std::optional<std::uint64_t> max_bytes);

 private:
  void open_for_writing();
  void read_settings();
  void write_settings();
  /// Returns the index, opening or rebuilding it if needed. REQUIRES: `mutex_` is held.
  Index& index();
  void rebuild();
  /// Calls `work` with the index; repeats it with a new index when the first turns out to be damaged.
  void with_index(const std::function<void(Index&)>& work);
  Removal remove(const Key& key);
  class Group;
  std::size_t write(std::span<Incoming> entries, Group& group);
  void make_room(std::span<Wanted> blobs);
  void sync_replacing(Group& group);
  /// Returns 0 or errno.
  int publish(Group& group);
  int sync_published(Group& group, std::span<const std::size_t> named, const std::set<std::filesystem::path>& changed);
  bool durable() const { return options_.durability == Durability::kPower; }
  /// True for a while after a failure, when nothing is stored.
  bool pausing() const;
  /// Returns the entry if the blob is good. Sets a damaged blob aside.
  std::optional<Entry> accept(const Key& key, OpenedBlob opened);
  void set_aside(const Key& key, const std::string& reason);
  void forget(const Key& key);
  Statistics count_files() const;
  using Sizes = std::vector<std::pair<Key, std::uint64_t>>;
  /// Repairs the rows of the part from the blobs in its folder: adds missing rows, and removes rows without a blob.
  void repair_rows(std::size_t part, const BlobFolder& folder, Sizes seen);
  void heed_pressure();
  void warn_once(const std::string& kind, const std::string& text);

  const Options options_;
  const std::filesystem::path folder_;  // of this version of the format
  Clock& clock_;
  BlobFiles files_;
  bool writable_ = false;
  std::optional<std::uint64_t> max_bytes_;
  std::optional<Board> board_;
  std::optional<KeyLocks> claims_;
  std::optional<KeyLocks> evictions_;  // a separate owner, so that our own claims protect entries from eviction
  HotEntries hot_;
  std::atomic<std::uint32_t> pressure_{0};
  std::atomic<std::int64_t> retry_ns_{0};  // when storing may be tried again

  std::mutex flights_mutex_;
  std::condition_variable flights_changed_;
  std::unordered_set<Key> flights_;  // claimed by threads of this process

  std::mutex mutex_;  // guards the index
  std::optional<Index> index_;
  std::mutex told_mutex_;
  std::set<std::string> told_;
};

}  // namespace unidle::cache::detail
