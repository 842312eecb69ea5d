// What one process has open of a cache. A forked child makes its own.
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

/// An entry that is to be stored. The arrays lie elsewhere.
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
  /// The most that store() takes at a time: each has an open file until it is done.
  static constexpr std::size_t kMostTogether = 128;
  /// By the holder of their claims, which are of different keys. Takes the first of the entries, as many as go well
  /// together, waits for the disk once for all, and returns how many those are: at least one of those that are given.
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
  /// The index, opened or made anew as needs be. `mutex_` is held.
  Index& index();
  void rebuild();
  /// Calls `work` with the index; once more with a new one when it turns out to be damaged.
  void with_index(const std::function<void(Index&)>& work);
  Removal remove(const Key& key);
  class Group;
  std::size_t write(std::span<Incoming> entries, Group& group);
  void make_room(std::span<Wanted> blobs);
  void sync_replacing(Group& group);
  /// 0, or what went wrong as errno.
  int publish(Group& group);
  int sync_published(Group& group, std::span<const std::size_t> named, const std::set<std::filesystem::path>& changed);
  bool durable() const { return options_.durability == Durability::kPower; }
  /// Nothing is stored for a while after a failure.
  bool pausing() const;
  /// The entry, should the blob be good. What is damaged is set aside.
  std::optional<Entry> accept(const Key& key, OpenedBlob opened);
  void set_aside(const Key& key, const std::string& reason);
  void forget(const Key& key);
  Statistics count_files() const;
  using Sizes = std::vector<std::pair<Key, std::uint64_t>>;
  /// The rows of the part, by the blobs that were seen in its folder: those that are missing are made, and those that
  /// lack their blob go.
  void put_rows_right(std::size_t part, const BlobFolder& folder, Sizes seen);
  void heed_pressure();
  void tell_once(const std::string& kind, const std::string& text);

  const Options options_;
  const std::filesystem::path folder_;  // of this version of the format
  Clock& clock_;
  BlobFiles files_;
  bool writable_ = false;
  std::optional<std::uint64_t> max_bytes_;
  std::optional<Board> board_;
  std::optional<KeyLocks> claims_;
  std::optional<KeyLocks> evictions_;  // another owner, so that our own claims keep entries from being evicted
  HotEntries hot_;
  std::atomic<std::uint32_t> pressure_{0};
  std::atomic<std::int64_t> retry_ns_{0};  // when something may be stored again

  std::mutex flights_mutex_;
  std::condition_variable flights_changed_;
  std::unordered_set<Key> flights_;  // claimed by threads of this process

  std::mutex mutex_;  // of the index
  std::optional<Index> index_;
  std::mutex told_mutex_;
  std::set<std::string> told_;
};

}  // namespace unidle::cache::detail
