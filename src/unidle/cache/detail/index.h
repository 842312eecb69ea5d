// What is in the cache, how large it is and what goes next: a database beside the blobs, made anew from them when lost.
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

/// A blob that asks for room.
struct Wanted {
  BlobFacts blob;
  bool fits = false;
};

/// What comes of an attempt to take an entry away.
enum class Removal { kGone, kHeld };

/// Eviction is S3-FIFO: a small queue for what is new, a main queue for what was used again, and a list of what was put
/// out of the small one lately. What is read once, as in a scan, passes through the small queue and leaves the main one
/// alone. A read only counts (Board): queues change when something is put, never when something is read.
///
/// Every blob has a row, at any moment at which a process may be killed: the row comes before the blob and goes after
/// it. A row may lack its blob. Not thread-safe; several processes may have one. Failures are kIo.
class Index {
 public:
  /// Each version of the tables has a file of its own, so that no program takes another's for a damaged one.
  static std::string file_name();
  /// What versions before ours may have left in the folder of an index.
  static std::vector<std::string> earlier_file_names();

  /// Opens or makes the database at `path`.
  Index(const std::filesystem::path& path, Board& board);

  /// False until rebuild(): the database is new, and knows nothing of the blobs that are there.
  bool complete();
  /// Within one transaction: `each` calls add() for every blob there is.
  void rebuild(const std::function<void(const std::function<void(const BlobFacts&)>& add)>& each);

  /// The file at the path is no longer the one that is open.
  bool replaced() const;
  /// The failure that was just thrown says that the file is no database, or a damaged one.
  bool damaged() const;

  /// Takes note of blobs that are about to be there. Evicts others by `remove` until all fit in `max_bytes`; of those
  /// for which that cannot be done nothing is changed.
  void add(std::span<Wanted> blobs, std::optional<std::uint64_t> max_bytes,
           const std::function<Removal(const Key&)>& remove);
  /// Evicts until at most `max_bytes` are left; what it took away.
  Totals shrink(std::uint64_t max_bytes, const std::function<Removal(const Key&)>& remove);
  /// The entry is no longer there.
  void forget(const Key& key);
  /// A blob that is there: its row is made or corrected, without eviction.
  void adopt(const BlobFacts& blob);

  Totals totals();
  /// Keys and bytes of the rows of a part (BlobFiles), by their keys.
  std::vector<std::pair<Key, std::uint64_t>> rows(std::size_t part);

 private:
  enum Queue : std::int64_t { kSmall = 0, kMain = 1 };
  struct Row {
    std::uint64_t bytes = 0;
    Queue queue = kSmall;
    bool named = false;
  };
  /// The one row that sums the others up, as it stands in this transaction.
  struct Sums {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t small_bytes = 0;
    std::int64_t next = 0;  // position
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
