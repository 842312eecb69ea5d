// The entries, total size and eviction order of the cache: a database beside the blobs, rebuilt from them when lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "unidle/base/sqlite.h"
#include "unidle/cache/detail/blob_files.h"
#include "unidle/cache/detail/board.h"
#include "unidle/cache/key.h"

namespace unidle::cache::detail {

struct Totals {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t named = 0;
};

/// A blob to be added.
struct Wanted {
  BlobFacts blob;
  bool fits = false;
};

/// The result of trying to remove an entry.
enum class Removal { kGone, kHeld };

/// Evicts by S3-FIFO: a small queue for new entries, a main queue for reused ones, and a list of those recently evicted
/// from the small queue. Entries read once, as in a scan, pass through the small queue without affecting the main one.
/// Reads only count (Board); queues change on put, never on read.
///
/// Every blob has a row, whenever a process is killed: the row is added before the blob and removed after it. A row may
/// lack its blob. Not thread-safe; several processes may each have one. Failures are kIo.
class Index {
 public:
  /// Each version of the tables has its own file, so that no program takes another version's for damaged.
  static std::string file_name();
  /// Files that earlier versions may have left in the index folder.
  static std::vector<std::string> earlier_file_names();

  /// Opens or creates the database at `path`.
  Index(const std::filesystem::path& path, Board& board);

  /// False until rebuild(): the database is new and does not know existing blobs.
  bool complete();
  /// In one transaction, `each` calls add() for every existing blob.
  void rebuild(const std::function<void(const std::function<void(const BlobFacts&)>& add)>& each);

  /// True when the file at the path is no longer the open one.
  bool replaced() const;
  /// True when the exception just thrown means that the file is damaged or not a database.
  bool damaged() const;

  /// Registers blobs that are about to be stored. Evicts others with `remove` until all fit into `max_bytes`; blobs
  /// that cannot fit change nothing.
  void add(std::span<Wanted> blobs, std::optional<std::uint64_t> max_bytes,
           const std::function<Removal(const Key&)>& remove);
  /// Evicts down to `max_bytes`; returns what it removed.
  Totals shrink(std::uint64_t max_bytes, const std::function<Removal(const Key&)>& remove);
  /// Removes the row of an entry that is gone.
  void forget(const Key& key);
  /// Adds or corrects the row of an existing blob, without eviction.
  void adopt(const BlobFacts& blob);

  Totals totals();
  /// Keys and bytes of a part's rows (BlobFiles), ordered by key.
  std::vector<std::pair<Key, std::uint64_t>> rows(std::size_t part);

 private:
  enum Queue : std::int64_t { kSmall = 0, kMain = 1 };
  struct Row {
    std::uint64_t bytes = 0;
    Queue queue = kSmall;
    bool named = false;
  };
  /// The row of totals, as of this transaction.
  struct Sums {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t small_bytes = 0;
    std::int64_t next = 0;  // position of the next row
    std::int64_t ghosts = 0;
    std::int64_t named = 0;
  };
  struct Statements;
  class Transaction;

  void open_tables();
  void make_tables();
  static std::int64_t mark_of(const Sums& sums);
  Sums read_sums();
  void write_sums(const Sums& sums);
  std::optional<Row> find(const Key& key);
  void insert(Sums& sums, const BlobFacts& blob, Queue queue);
  void erase(Sums& sums, const Key& key);
  void move_to_end(Sums& sums, const Key& key, const Row& row, Queue queue);
  std::optional<Key> oldest(Queue queue, Row& row);
  void remember_ghost(Sums& sums, const Key& key);
  bool take_ghost(Sums& sums, const Key& key);
  bool add_one(Sums& sums, const BlobFacts& blob, std::optional<std::uint64_t> max_bytes,
               const std::function<Removal(const Key&)>& remove);
  bool evict_to(Sums& sums, std::uint64_t limit, std::uint64_t max_bytes,
                const std::function<Removal(const Key&)>& remove);

  std::filesystem::path path_;
  Board& board_;
  bool found_damaged_ = false;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
  sqlite::Database db_;
  std::shared_ptr<Statements> statements_;
};

}  // namespace unidle::cache::detail
