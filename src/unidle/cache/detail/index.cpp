#include "unidle/cache/detail/index.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace unidle::cache::detail {

namespace {

using sqlite::Blob;

constexpr std::int64_t kIndexVersion = 2;
/// The small queue gets one part in this many of the cache's bound.
constexpr std::uint64_t kSmallShare = 10;
/// Number of reads that move an entry from the small queue to the main queue.
constexpr unsigned kPromoteReads = 1;
/// Held entries are skipped; after this many, eviction gives up.
constexpr int kMostHeld = 256;

constexpr const char* kTablesSql = R"sql(
CREATE TABLE entries (
  key BLOB PRIMARY KEY, bytes INTEGER NOT NULL, queue INTEGER NOT NULL, position INTEGER NOT NULL,
  named INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX queues ON entries (queue, position);
CREATE TABLE ghosts (id INTEGER PRIMARY KEY, position INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX ghost_queue ON ghosts (position);
CREATE TABLE sums (
  id INTEGER PRIMARY KEY CHECK (id = 1), entries INTEGER NOT NULL, bytes INTEGER NOT NULL, small_bytes INTEGER NOT NULL,
  next INTEGER NOT NULL, ghosts INTEGER NOT NULL, named INTEGER NOT NULL, mark INTEGER NOT NULL) STRICT;
INSERT INTO sums VALUES (1, 0, 0, 0, 1, 0, 0, 0);
)sql";

Blob as_blob(const Key& key) { return {{reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()}}; }

std::int64_t ghost_id(const Key& key) { return static_cast<std::int64_t>(key.prefix()); }

std::optional<Key> key_from(std::string_view bytes) {
  Key key;
  if (bytes.size() != key.bytes.size()) {
    return std::nullopt;
  }
  std::memcpy(key.bytes.data(), bytes.data(), bytes.size());
  return key;
}

}  // namespace

struct Index::Statements {
  explicit Statements(sqlite::Database& db)
      : begin(db, "BEGIN IMMEDIATE"),
        commit(db, "COMMIT"),
        sums(db, "SELECT entries, bytes, small_bytes, next, ghosts, named, mark FROM sums WHERE id = 1"),
        set_sums(db,
                 "UPDATE sums SET entries = ?, bytes = ?, small_bytes = ?, next = ?, ghosts = ?, named = ?, mark = ? "
                 "WHERE id = 1"),
        find(db, "SELECT bytes, queue, named FROM entries WHERE key = ?"),
        insert(db, "INSERT INTO entries VALUES (?, ?, ?, ?, ?)"),
        erase(db, "DELETE FROM entries WHERE key = ?"),
        move(db, "UPDATE entries SET queue = ?, position = ? WHERE key = ?"),
        oldest(db, "SELECT key, bytes, named FROM entries WHERE queue = ? ORDER BY position LIMIT 1"),
        add_ghost(db, "INSERT OR REPLACE INTO ghosts VALUES (?, ?)"),
        has_ghost(db, "SELECT 1 FROM ghosts WHERE id = ?"),
        erase_ghost(db, "DELETE FROM ghosts WHERE id = ?"),
        oldest_ghost(db, "SELECT id FROM ghosts ORDER BY position LIMIT 1"),
        rows(db, "SELECT key, bytes FROM entries WHERE key BETWEEN ? AND ? ORDER BY key") {}

  sqlite::Statement begin, commit, sums, set_sums, find, insert, erase, move, oldest, add_ghost, has_ghost, erase_ghost,
      oldest_ghost, rows;
};

/// Holds the write lock; rolls back unless committed.
class Index::Transaction {
 public:
  explicit Transaction(Index& index) : index_(index) { index_.statements_->begin.run(); }
  ~Transaction() {
    if (!done_ && sqlite3_get_autocommit(index_.db_.get()) == 0) {
      index_.found_damaged_ = index_.damaged();  // the next call clears SQLite's last error
      sqlite3_exec(index_.db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    index_.statements_->commit.run();
    done_ = true;
  }

 private:
  Index& index_;
  bool done_ = false;
};

std::string Index::file_name() { return fmt::format("index-{}.db", kIndexVersion); }

std::vector<std::string> Index::earlier_file_names() {
  std::vector<std::string> names = {"index.db"};  // before versions had their own names
  for (std::int64_t version = 2; version < kIndexVersion; ++version) {
    names.push_back(fmt::format("index-{}.db", version));
  }
  return names;
}

Index::Index(const std::filesystem::path& path, Board& board)
    : path_(path),
      board_(board),
      db_(path, sqlite::uri_of(path, ""), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ErrorCode::kIo, "cache index") {
  sqlite3_busy_timeout(db_.get(), 60'000);  // each holds the lock briefly, but there may be many
  try {
    open_tables();
  } catch (const Error& error) {
    if (damaged()) {
      throw Error(ErrorCode::kCorrupt, error.subject(), error.message());
    }
    throw;
  }
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    inode_ = status.st_ino;
    device_ = status.st_dev;
  }
}

void Index::open_tables() {
  // Syncs only at checkpoints, which are rare because each waits for the disk twice. After a power failure the last
  // rows may be missing; prune and verify add them again.
  db_.execute(
      "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=8000;");
  if (db_.query_integer("PRAGMA user_version") == 0) {
    make_tables();
  }
  statements_ = std::make_shared<Statements>(db_);
}

void Index::make_tables() {
  db_.execute("BEGIN IMMEDIATE");
  // Another process may have made the tables meanwhile.
  if (db_.query_integer("SELECT count(*) FROM sqlite_master WHERE name = 'sums'") == 0) {
    db_.execute(kTablesSql);
  }
  db_.execute("COMMIT");
}

bool Index::complete() { return db_.query_integer("PRAGMA user_version") == kIndexVersion; }

bool Index::replaced() const {
  struct stat status {};
  return ::stat(path_.c_str(), &status) != 0 || status.st_ino != inode_ || status.st_dev != device_;
}

bool Index::damaged() const {
  if (found_damaged_) {
    return true;
  }
  switch (sqlite3_errcode(db_.get()) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:  // our statements never violate constraints unless a row is damaged
    case SQLITE_MISMATCH:
    case SQLITE_IOERR:               // e.g. the log was removed; a failing disk rejects the new file too
    case SQLITE_ERROR: return true;  // a table is missing
    default: return false;
  }
}

void Index::rebuild(const std::function<void(const std::function<void(const BlobFacts&)>& add)>& each) {
  Transaction transaction(*this);
  db_.execute("DELETE FROM entries; DELETE FROM ghosts;");
  Sums sums;
  sums.next = 1;
  // Existing entries are likely to be used again: the main queue protects them from new ones.
  each([&](const BlobFacts& blob) {
    if (!find(blob.key)) {
      insert(sums, blob, kMain);
    }
  });
  write_sums(sums);
  db_.execute(fmt::format("PRAGMA user_version={}", kIndexVersion).c_str());
  transaction.commit();
}

/// A checksum of the sums row: eviction depends on these numbers, and a wrong one would empty the cache.
std::int64_t Index::mark_of(const Sums& sums) {
  std::uint64_t mark = 0;
  for (const std::int64_t value : {sums.entries, sums.bytes, sums.small_bytes, sums.next, sums.ghosts, sums.named}) {
    mark = (mark ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
    mark ^= mark >> 29;
  }
  return static_cast<std::int64_t>(mark);
}

Index::Sums Index::read_sums() {
  sqlite::Statement& query = statements_->sums;
  query.reset();
  Sums sums;
  bool good = query.step();
  if (good) {
    sums = {query.integer(0), query.integer(1), query.integer(2), query.integer(3), query.integer(4), query.integer(5)};
    const std::int64_t mark = query.integer(6);
    good = mark == mark_of(sums) || (mark == 0 && sums.next == 1 && sums.entries == 0);
  }
  query.reset();
  if (!good) {
    throw Error(ErrorCode::kCorrupt, path_.string(), "has impossible sums");
  }
  return sums;
}

void Index::write_sums(const Sums& sums) {
  statements_->set_sums.run(sums.entries, sums.bytes, sums.small_bytes, sums.next, sums.ghosts, sums.named,
                            mark_of(sums));
}

std::optional<Index::Row> Index::find(const Key& key) {
  sqlite::Statement& query = statements_->find;
  query.reset();
  std::optional<Row> row;
  if (query.bind_all(as_blob(key)).step()) {
    row = Row{static_cast<std::uint64_t>(query.integer(0)), query.integer(1) == kMain ? kMain : kSmall,
              query.integer(2) != 0};
  }
  query.reset();
  return row;
}

void Index::insert(Sums& sums, const BlobFacts& blob, Queue queue) {
  const auto size = static_cast<std::int64_t>(blob.bytes);
  const std::int64_t named = blob.named ? 1 : 0;
  statements_->insert.run(as_blob(blob.key), size, static_cast<std::int64_t>(queue), sums.next++, named);
  ++sums.entries;
  sums.named += named;
  sums.bytes += size;
  sums.small_bytes += queue == kSmall ? size : 0;
}

void Index::erase(Sums& sums, const Key& key) {
  if (const auto row = find(key)) {
    const auto size = static_cast<std::int64_t>(row->bytes);
    statements_->erase.run(as_blob(key));
    --sums.entries;
    sums.named -= row->named ? 1 : 0;
    sums.bytes -= size;
    sums.small_bytes -= row->queue == kSmall ? size : 0;
  }
}

void Index::move_to_end(Sums& sums, const Key& key, const Row& row, Queue queue) {
  statements_->move.run(static_cast<std::int64_t>(queue), sums.next++, as_blob(key));
  const auto size = static_cast<std::int64_t>(row.bytes);
  sums.small_bytes += (queue == kSmall ? size : 0) - (row.queue == kSmall ? size : 0);
}

std::optional<Key> Index::oldest(Queue queue, Row& row) {
  sqlite::Statement& query = statements_->oldest;
  query.reset();
  std::optional<Key> key;
  if (query.bind_all(static_cast<std::int64_t>(queue)).step()) {
    key = key_from(query.bytes(0));
    row = {static_cast<std::uint64_t>(query.integer(1)), queue, query.integer(2) != 0};
    if (!key) {
      query.reset();
      throw Error(ErrorCode::kCorrupt, path_.string(), "has an invalid key");
    }
  }
  query.reset();
  return key;
}

void Index::remember_ghost(Sums& sums, const Key& key) {
  statements_->add_ghost.run(ghost_id(key), sums.next++);
  ++sums.ghosts;
  // As many as entries: a return within that distance would have been a hit in a cache twice as large.
  while (sums.ghosts > std::max<std::int64_t>(sums.entries, 64)) {
    sqlite::Statement& query = statements_->oldest_ghost;
    query.reset();
    const bool any = query.step();
    const std::int64_t id = any ? query.integer(0) : 0;
    query.reset();
    if (!any) {
      sums.ghosts = 0;
      return;
    }
    statements_->erase_ghost.run(id);
    --sums.ghosts;
  }
}

bool Index::take_ghost(Sums& sums, const Key& key) {
  sqlite::Statement& query = statements_->has_ghost;
  query.reset();
  const bool there = query.bind_all(ghost_id(key)).step();
  query.reset();
  if (there) {
    statements_->erase_ghost.run(ghost_id(key));
    --sums.ghosts;
  }
  return there;
}

bool Index::evict_to(Sums& sums, std::uint64_t limit, std::uint64_t max_bytes,
                     const std::function<Removal(const Key&)>& remove) {
  int held = 0;
  while (static_cast<std::uint64_t>(std::max<std::int64_t>(sums.bytes, 0)) > limit && sums.entries > 0) {
    Row row;
    const bool from_small =
        static_cast<std::uint64_t>(std::max<std::int64_t>(sums.small_bytes, 0)) > max_bytes / kSmallShare;
    std::optional<Key> key = oldest(from_small ? kSmall : kMain, row);
    key = key ? key : oldest(from_small ? kMain : kSmall, row);
    if (!key) {
      throw Error(ErrorCode::kCorrupt, path_.string(), "has sums that do not match its rows");
    }
    const unsigned hits = board_.hits(*key);
    if (row.queue == kSmall && hits >= kPromoteReads) {
      board_.set_hits(*key, 0);
      move_to_end(sums, *key, row, kMain);
    } else if (row.queue == kMain && hits > 0) {
      board_.set_hits(*key, hits - 1);
      move_to_end(sums, *key, row, kMain);
    } else if (remove(*key) == Removal::kHeld) {
      move_to_end(sums, *key, row, kMain);
      if (++held >= kMostHeld) {
        return false;
      }
    } else {
      erase(sums, *key);
      if (row.queue == kSmall) {
        remember_ghost(sums, *key);
      }
    }
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(sums.bytes, 0)) <= limit;
}

void Index::add(std::span<Wanted> blobs, std::optional<std::uint64_t> max_bytes,
                const std::function<Removal(const Key&)>& remove) {
  Transaction transaction(*this);
  Sums sums = read_sums();
  for (Wanted& wanted : blobs) {
    wanted.fits = add_one(sums, wanted.blob, max_bytes, remove);
  }
  write_sums(sums);
  transaction.commit();
}

bool Index::add_one(Sums& sums, const BlobFacts& blob, std::optional<std::uint64_t> max_bytes,
                    const std::function<Removal(const Key&)>& remove) {
  if (max_bytes && blob.bytes > *max_bytes) {
    return false;
  }
  const auto before = find(blob.key);
  if (before) {
    erase(sums, blob.key);
  }
  bool fits = true;
  if (max_bytes) {
    fits = evict_to(sums, *max_bytes - blob.bytes, *max_bytes, remove);
  }
  if (fits) {
    const bool again = take_ghost(sums, blob.key);
    if (!before) {
      board_.set_hits(blob.key, 0);
    }
    insert(sums, blob, again ? kMain : before ? before->queue : kSmall);
  } else if (before) {
    insert(sums, {blob.key, before->bytes, before->named}, before->queue);  // its old blob stays
  }
  return fits;
}

Totals Index::shrink(std::uint64_t max_bytes, const std::function<Removal(const Key&)>& remove) {
  Totals gone;
  for (bool more = true; more;) {
    Transaction transaction(*this);
    Sums sums = read_sums();
    const Sums before = sums;
    // In parts, so that other processes get the lock in between.
    constexpr std::uint64_t kPart = 64 << 20;
    const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(sums.bytes, 0));
    const std::uint64_t limit = now > max_bytes + kPart ? now - kPart : max_bytes;
    more = evict_to(sums, limit, max_bytes, remove) && limit > max_bytes;
    gone.entries += static_cast<std::uint64_t>(before.entries - sums.entries);
    gone.bytes += static_cast<std::uint64_t>(before.bytes - sums.bytes);
    write_sums(sums);
    transaction.commit();
  }
  return gone;
}

void Index::forget(const Key& key) {
  Transaction transaction(*this);
  Sums sums = read_sums();
  erase(sums, key);
  write_sums(sums);
  transaction.commit();
}

void Index::adopt(const BlobFacts& blob) {
  Transaction transaction(*this);
  Sums sums = read_sums();
  const auto row = find(blob.key);
  erase(sums, blob.key);
  insert(sums, blob, row ? row->queue : kSmall);
  write_sums(sums);
  transaction.commit();
}

Totals Index::totals() {
  const Sums sums = read_sums();
  return {static_cast<std::uint64_t>(sums.entries), static_cast<std::uint64_t>(sums.bytes),
          static_cast<std::uint64_t>(sums.named)};
}

std::vector<std::pair<Key, std::uint64_t>> Index::rows(std::size_t part) {
  Key first;
  Key last;
  last.bytes.fill(0xff);
  first.bytes[0] = last.bytes[0] = static_cast<std::uint8_t>(part);
  sqlite::Statement& query = statements_->rows;
  query.reset();
  query.bind_all(as_blob(first), as_blob(last));
  std::vector<std::pair<Key, std::uint64_t>> found;
  while (query.step()) {
    if (const auto key = key_from(query.bytes(0))) {
      found.emplace_back(*key, static_cast<std::uint64_t>(query.integer(1)));
    }
  }
  query.reset();
  return found;
}

}  // namespace unidle::cache::detail
