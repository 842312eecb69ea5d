#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/secrets.h"
#include "unidle/base/sqlite.h"
#include "unidle/record/detail/access.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/record.h"

namespace unidle::record {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kCommitInterval_ns = kNsPerSecond;

/// Bytes that are not UTF-8 (in an argument, a path) are replaced rather than refused.
std::string to_text(const nlohmann::json& value) { return json_text(value, -1); }

/// No secret is stored in a record.
std::string to_masked_text(nlohmann::json value) {
  mask_secrets(value);
  return to_text(value);
}

void make_folder(const fs::path& folder) {
  const fs::path parent = (folder.has_filename() ? folder : folder.parent_path()).parent_path();  // also of "record/"
  std::error_code failure;
  fs::create_directories(parent.empty() ? "." : parent, failure);
  if (failure || (!make_record_folder(folder, failure) && failure)) {
    throw system_error(ErrorCode::kIo, folder.string(), "cannot be created", failure.value());
  }
}

/// Creates an empty database with all tables at `file`; errors name `path`.
void make_tables(const fs::path& file, const fs::path& path) {
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, file_mode()));
  if (!fd) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be created", errno);
  }
  sqlite::Database db(path, sqlite::uri_of(file, ""), SQLITE_OPEN_READWRITE, ErrorCode::kIo, kRecordKind);
  // WAL from the start: switching to it later, if cut off, would leave a journal that no reader may roll back. Nobody
  // sees the file yet, so no need to sync.
  db.execute("PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;");
  db.execute(
      fmt::format("BEGIN; PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId, kSchemaVersion).c_str());
  db.execute(kSchemaSql);
  db.execute(fmt::format("INSERT INTO meta VALUES ('schema', '{}'); COMMIT;", kSchemaVersion).c_str());
  // The file is renamed without its log. Closing would checkpoint too, but not report a full disk.
  db.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

/// Gives the file its final name unless that name exists: two runs with the same record folder cannot both have it.
/// Returns false with errno. Not every file system supports both ways (NFS has no RENAME_NOREPLACE, FAT no links).
bool take_name(const fs::path& file, const fs::path& path) {
  if (::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    return true;
  }
  return errno != EEXIST && ::link(file.c_str(), path.c_str()) == 0;
}

void remove_database(const fs::path& file) {
  std::error_code ignored;
  for (const char* suffix : {"-wal", "-shm", "-journal", ""}) {
    fs::remove(file.string() + suffix, ignored);
  }
}

/// Removes what killed processes left while creating a record here. Creating one takes milliseconds.
void remove_leftovers(const fs::path& folder) {
  constexpr auto kLongAgo = std::chrono::minutes(1);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(".record.db.") &&
        fs::file_time_type::clock::now() - entry.last_write_time(ignored) > kLongAgo) {
      fs::remove(entry.path(), ignored);
    }
  }
}

/// Creates `record.db` whole or not at all, whenever the process is killed.
void create_database(const fs::path& folder) {
  make_folder(folder);
  const fs::path path = folder / "record.db";
  const fs::path file = folder / fmt::format(".record.db.{}", ::getpid());
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(path, ignored))) {
    throw Error(ErrorCode::kUsage, folder.string(), "holds a record already", "name another folder");
  }
  remove_leftovers(folder);
  remove_database(file);  // left by a killed process with the same id
  try {
    make_tables(file, path);
    if (!take_name(file, path)) {
      if (errno == EEXIST) {
        throw Error(ErrorCode::kUsage, folder.string(), "holds a record already", "name another folder");
      }
      throw system_error(ErrorCode::kIo, path.string(), "cannot be created", errno);
    }
    remove_database(file);  // remains if the final name was made by a link
  } catch (...) {
    remove_database(file);
    throw;
  }
}

sqlite::Database open_writable(const fs::path& folder, Begin begin) {
  if (begin == Begin::kNew) {
    create_database(folder);
  }
  const fs::path path = folder / "record.db";
  sqlite::Database db(path, sqlite::uri_of(path, ""), SQLITE_OPEN_READWRITE, ErrorCode::kIo, kRecordKind);
  // WAL: readers can read a running record, and a commit does not wait for the disk.
  db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
  return db;
}

/// Everything that ends with the connection.
struct Session {
  Session(const fs::path& folder, Begin begin) : db(open_writable(folder, begin)) {}

  sqlite::Database db;
  sqlite::Statement meta{db, "INSERT OR REPLACE INTO meta VALUES (?,?)"};
  sqlite::Statement step{db, "INSERT INTO steps VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"};
  /// A loss of NaN is a finding, not missing data; SQLite would store it as NULL.
  sqlite::Statement nan_step{db, "INSERT INTO steps VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,'nan',?)"};
  sqlite::Statement span{db, "INSERT INTO spans VALUES (?,?,?,?,?)"};
  /// SQLite would refuse a sum that overflows: stop adding before it does.
  sqlite::Statement work{
      db,
      "INSERT INTO sample_work VALUES (?,?,?,?,?,?,?) ON CONFLICT (t_ns, process, thread) DO UPDATE SET "
      "samples = min(samples, 1 << 62) + min(excluded.samples, (1 << 62) - 1), "
      "busy_ns = min(busy_ns, 1 << 62) + min(excluded.busy_ns, (1 << 62) - 1), "
      "slowest_ns = max(slowest_ns, excluded.slowest_ns), "
      "bytes = min(bytes, 1 << 62) + min(excluded.bytes, (1 << 62) - 1)"};
  sqlite::Statement metric{db, "INSERT INTO metrics VALUES (?,?,?,?,?)"};
  sqlite::Statement setting{db, "INSERT INTO settings VALUES (?,?,?,?)"};
  sqlite::Statement note{db, "INSERT INTO notes VALUES (?,?,?)"};
  sqlite::Statement output{db, "INSERT OR REPLACE INTO output VALUES (?,?)"};
  sqlite::Statement series{db, "INSERT INTO series VALUES (?,?,?,?)"};
  sqlite::Statement point{db, "INSERT OR REPLACE INTO points VALUES (?,?,?)"};
  sqlite::Statement position{db, "INSERT OR REPLACE INTO positions VALUES (?,?,?,?,?)"};
  sqlite::Statement drop_position{db, "DELETE FROM positions WHERE file=?"};
  std::optional<std::int64_t> begun_ns;  // start of the open transaction
};

}  // namespace

struct Writer::Impl {
  Impl(const fs::path& folder, Begin begin, Clock& given) : clock(given), session(std::in_place, folder, begin) {
    sqlite::Statement known(session->db, "SELECT name, unit, subject, id FROM series");
    while (known.step()) {
      series_ids[{known.text(0), known.text(1), known.text(2)}] = known.integer(3);
    }
  }

  void commit() {
    if (session && session->begun_ns) {
      session->begun_ns.reset();
      session->db.execute("COMMIT");
    }
  }

  /// Runs `work` in the open transaction. A failure closes the record and is thrown once.
  template <typename Work>
  void write(Work work) {
    if (!session) {
      return;
    }
    try {
      const std::int64_t now = clock.now_ns();
      if (!session->begun_ns) {
        session->db.execute("BEGIN");
        session->begun_ns = now;
      }
      work(*session);
      if (commits_periodically && now - *session->begun_ns >= kCommitInterval_ns) {
        commit();
      }
    } catch (...) {
      session.reset();
      throw;
    }
  }

  Clock& clock;
  std::optional<Session> session;
  bool commits_periodically = true;  // commits at intervals
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> series_ids;
};

Writer::Writer(const fs::path& folder, Begin begin, Clock& clock)
    : impl_(std::make_unique<Impl>(folder, begin, clock)) {}

Writer::~Writer() {
  if (!impl_->session) {
    return;
  }
  try {
    impl_->commit();
    // A finished record is one plain file that can be read from a read-only folder. Fails harmlessly while somebody
    // reads it.
    sqlite3_busy_timeout(impl_->session->db.get(), 100);
    sqlite3_exec(impl_->session->db.get(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A destructor cannot report it; flush() does.
  }
}

void Writer::set_meta(std::string_view key, const nlohmann::json& value) {
  impl_->write([&](Session& s) { s.meta.run(key, to_masked_text(value)); });
}

void Writer::add(const Step& step) {
  impl_->write([&](Session& s) {
    const auto run = [&](sqlite::Statement& statement, const auto&... loss) {
      statement.run(step.process, step.index, step.t_ns, step.duration_ns, step.samples, step.micro_batches,
                    step.input_ns, step.transfer_ns, step.forward_ns, step.backward_ns, step.optimizer_ns, step.sync_ns,
                    step.syncs, loss..., step.samples_before);
    };
    if (!step.loss) {
      run(s.step, std::optional<std::int64_t>());
    } else if (std::isnan(*step.loss)) {
      run(s.nan_step);
    } else {
      run(s.step, *step.loss);
    }
  });
}

void Writer::add(const Span& span) {
  impl_->write([&](Session& s) { s.span.run(span.kind, span.process, span.t_ns, span.duration_ns, span.samples); });
}

void Writer::add(const SampleWork& work) {
  impl_->write([&](Session& s) {
    s.work.run(work.process, work.thread, work.t_ns, work.samples, work.busy_ns, work.slowest_ns, work.bytes);
  });
}

void Writer::add(const Metric& metric) {
  impl_->write([&](Session& s) { s.metric.run(metric.name, metric.t_ns, metric.step, metric.samples, metric.value); });
}

void Writer::add(const Setting& setting) {
  impl_->write(
      [&](Session& s) { s.setting.run(setting.knob, mask_secrets(setting.value), setting.source, setting.location); });
}

void Writer::add(const Note& note) {
  impl_->write([&](Session& s) { s.note.run(note.t_ns, note.process, to_masked_text(note.body)); });
}

void Writer::set_output_tail(std::string_view stream, std::string_view bytes) {
  const std::string masked = mask_secrets(bytes);
  impl_->write([&](Session& s) { s.output.run(stream, sqlite::Blob{masked}); });
}

std::int64_t Writer::series(const Series& series) {
  const auto next = static_cast<std::int64_t>(impl_->series_ids.size()) + 1;
  const auto [entry, added] = impl_->series_ids.try_emplace({series.name, series.unit, series.subject}, next);
  if (added) {
    impl_->write([&](Session& s) { s.series.run(next, series.name, series.unit, series.subject); });
  }
  return entry->second;
}

void Writer::add_point(std::int64_t series, Point point) {
  impl_->write([&](Session& s) { s.point.run(series, point.t_ns, point.value); });
}

void Writer::set(const Position& position) {
  impl_->write([&](Session& s) {
    s.position.run(position.file, position.process, position.process_start, position.started_ns, position.taken);
  });
}

void Writer::drop_position(std::string_view file) {
  impl_->write([&](Session& s) { s.drop_position.run(file); });
}

void Writer::drop_positions() {
  impl_->write([&](Session& s) { s.db.execute("DELETE FROM positions"); });
}

void Writer::commit_on_flush_only() { impl_->commits_periodically = false; }

void Writer::flush() {
  impl_->write([](Session&) {});
  try {
    impl_->commit();
  } catch (...) {
    impl_->session.reset();
    throw;
  }
}

}  // namespace unidle::record
