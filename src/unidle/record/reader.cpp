#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/sqlite.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/record.h"

namespace unidle::record {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHint = "expected a folder that `unidle run` made, or the record.db in it";

fs::path database_path(const fs::path& path) {
  const fs::path file = fs::is_directory(status_of(path)) ? path / "record.db" : path;
  if (!fs::is_regular_file(status_of(file))) {
    throw Error(ErrorCode::kInput, path.string(), "is not an unidle record: it has no record.db", kHint);
  }
  return file;
}

sqlite::Database open_at(const fs::path& path, const std::string& uri, int flags) {
  sqlite::Database db(path, uri, flags, ErrorCode::kInput, kRecordKind);
  db.query_integer("SELECT count(*) FROM sqlite_schema");  // SQLite opens lazily: this reads
  return db;
}

bool holds_bytes(const fs::path& file) {
  std::error_code failure;
  const std::uintmax_t bytes = fs::file_size(file, failure);
  return !failure && bytes > 0;
}

bool has_leftovers(const fs::path& file) {
  return std::any_of(sqlite::kLeftovers.begin(), sqlite::kLeftovers.end(),
                     [&](const char* suffix) { return holds_bytes(file.string() + suffix); });
}

/// Recovers in a copy what a killed writer left: a reader never changes a record.
sqlite::Database open_copy(const fs::path& file, std::optional<TemporaryFolder>& copy) {
  copy.emplace("unidle-record");
  const fs::path copied = copy->path() / "record.db";
  std::error_code failure;
  fs::copy_file(file, copied, failure);
  for (const char* suffix : sqlite::kLeftovers) {
    if (!failure && holds_bytes(file.string() + suffix)) {
      fs::copy_file(file.string() + suffix, copied.string() + suffix, failure);
    }
  }
  if (failure) {
    throw system_error(ErrorCode::kInput, file.string(), "cannot be copied for reading", failure.value());
  }
  fs::permissions(copied, fs::perms::owner_read | fs::perms::owner_write, failure);
  return open_at(file, sqlite::uri_of(copied, ""), SQLITE_OPEN_READWRITE);
}

/// In a read-only folder SQLite cannot create its shared-memory file. A finished record is then read without locks.
/// Rolling back a journal needs write permission.
sqlite::Database open_readable(const fs::path& file, std::optional<TemporaryFolder>& copy) {
  try {
    return open_at(file, sqlite::uri_of(file, ""), SQLITE_OPEN_READONLY);
  } catch (const Error&) {
    const fs::path parent = fs::absolute(file).parent_path();
    const bool only_read = ::faccessat(AT_FDCWD, parent.c_str(), W_OK, AT_EACCESS) != 0;
    if ((!only_read && !holds_bytes(file.string() + "-journal")) ||
        ::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) != 0) {
      throw;
    }
  }
  return has_leftovers(file) ? open_copy(file, copy)
                             : open_at(file, sqlite::uri_of(file, "?immutable=1"), SQLITE_OPEN_READONLY);
}

void check_schema(sqlite::Database& db, const fs::path& path) {
  // SQLite takes a truncated last page for one that ends in zeros. If a log or a journal is still there, SQLite reads
  // from it the pages that a full disk refused.
  std::error_code failure;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, failure));
  if (failure || (bytes % db.query_integer("PRAGMA page_size") != 0 && !has_leftovers(path))) {
    throw Error(ErrorCode::kInput, path.string(), "is damaged: it has been cut short");
  }
  if (db.query_integer("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorCode::kInput, path.string(), "is a database but no unidle record", kHint);
  }
  const std::int64_t version = db.query_integer("PRAGMA user_version");
  if (version > kSchemaVersion) {
    throw Error(ErrorCode::kInput, path.string(),
                fmt::format("has record schema {}, this unidle reads up to {}", version, kSchemaVersion),
                "read it with the unidle that wrote it, or a newer one");
  }
}

nlohmann::json parse(const fs::path& path, std::string_view text) {
  nlohmann::json value = parse_json(text);
  if (value.is_discarded()) {
    throw Error(ErrorCode::kInput, path.string(), "is damaged: a value in it is not JSON");
  }
  return value;
}

}  // namespace

struct Reader::Impl {
  explicit Impl(const fs::path& given) : file(database_path(given)), db(open_readable(file, copy)) {
    check_schema(db, file);
    folder = fs::absolute(file).lexically_normal().parent_path();
  }

  /// Calls `row` for every row of the result.
  template <typename Row, typename... Values>
  void each(std::string_view sql, Row row, const Values&... values) {
    sqlite::Statement statement(db, sql);
    statement.bind_all(values...);
    while (statement.step()) {
      row(statement);
    }
  }

  fs::path file;
  fs::path folder;
  std::optional<TemporaryFolder> copy;  // outlives db
  sqlite::Database db;
};

Reader::Reader(const fs::path& path) : impl_(std::make_unique<Impl>(path)) {}

Reader::~Reader() = default;

const fs::path& Reader::folder() const { return impl_->folder; }

const fs::path& Reader::file() const { return impl_->file; }

std::optional<nlohmann::json> Reader::meta(std::string_view key) const {
  std::optional<nlohmann::json> value;
  impl_->each(
      "SELECT value FROM meta WHERE key=?", [&](sqlite::Statement& row) { value = parse(impl_->file, row.text(0)); },
      key);
  return value;
}

std::optional<std::int64_t> Reader::time(std::string_view key) const {
  const auto value = meta(key);
  return value && value->is_number_integer() ? std::optional(value->get<std::int64_t>()) : std::nullopt;
}

std::map<std::string, nlohmann::json> Reader::all_meta() const {
  std::map<std::string, nlohmann::json> values;
  impl_->each("SELECT key, value FROM meta",
              [&](sqlite::Statement& row) { values.emplace(row.text(0), parse(impl_->file, row.text(1))); });
  return values;
}

void Reader::copy_to(const fs::path& file) const {
  // SQLite would create it with the umask's mode.
  UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!made) {
    throw system_error(ErrorCode::kIo, file.string(), "cannot be created", errno);
  }
  made.reset();
  try {
    impl_->each("VACUUM INTO ?", [](sqlite::Statement&) {}, file.string());
  } catch (const Error& failure) {
    throw Error(ErrorCode::kIo, file.string(), "cannot be written", failure.what());
  }
}

namespace {

constexpr std::string_view kStepColumns =
    "process, idx, t_ns, duration_ns, samples, micro_batches, input_ns, transfer_ns, forward_ns, backward_ns, "
    "optimizer_ns, sync_ns, syncs, samples_before, loss";

Step step_of(sqlite::Statement& row) {
  Step step{row.integer(0),        row.integer(1),       row.integer(2),        row.integer(3),
            row.integer(4),        row.integer(5),       row.maybe_integer(6),  row.maybe_integer(7),
            row.maybe_integer(8),  row.maybe_integer(9), row.maybe_integer(10), row.maybe_integer(11),
            row.maybe_integer(12), std::nullopt,         row.maybe_integer(13)};
  if (row.is_text(14)) {  // 'nan': SQLite has no NaN
    step.loss = std::numeric_limits<double>::quiet_NaN();
  } else if (!row.is_null(14)) {
    step.loss = row.real(14);
  }
  return step;
}

/// A damaged record may claim any number of rows.
constexpr std::size_t kMostReserved = 1'000'000;

}  // namespace

std::vector<Step> Reader::steps() const {
  std::vector<Step> steps;
  impl_->each("SELECT COALESCE(MAX(rowid), 0) FROM steps", [&](sqlite::Statement& row) {
    steps.reserve(std::min(kMostReserved, static_cast<std::size_t>(row.integer(0))));
  });
  impl_->each(fmt::format("SELECT {} FROM steps ORDER BY rowid", kStepColumns),
              [&](sqlite::Statement& row) { steps.push_back(step_of(row)); });
  return steps;
}

std::vector<Step> Reader::last_steps(std::int64_t most) const {
  std::vector<Step> steps;
  impl_->each(
      fmt::format("SELECT {} FROM steps ORDER BY rowid DESC LIMIT ?", kStepColumns),
      [&](sqlite::Statement& row) { steps.push_back(step_of(row)); }, most);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<Span> Reader::spans() const {
  std::vector<Span> spans;
  impl_->each("SELECT kind, process, t_ns, duration_ns, samples FROM spans ORDER BY rowid",
              [&](sqlite::Statement& row) {
                spans.push_back({row.text(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4)});
              });
  return spans;
}

std::vector<SampleWork> Reader::sample_work() const {
  std::vector<SampleWork> work;
  impl_->each(
      "SELECT process, thread, t_ns, samples, busy_ns, slowest_ns, bytes FROM sample_work ORDER BY t_ns, process, "
      "thread",
      [&](sqlite::Statement& row) {
        work.push_back({row.integer(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4), row.integer(5),
                        row.integer(6)});
      });
  return work;
}

std::vector<Metric> Reader::metrics(std::string_view name) const {
  std::vector<Metric> metrics;
  impl_->each(
      "SELECT name, t_ns, step, samples, value FROM metrics WHERE name=? ORDER BY rowid",
      [&](sqlite::Statement& row) {
        metrics.push_back({row.text(0), row.integer(1), row.integer(2), row.integer(3), row.real(4)});
      },
      name);
  return metrics;
}

std::vector<std::string> Reader::metric_names() const {
  std::vector<std::string> names;
  impl_->each("SELECT DISTINCT name FROM metrics ORDER BY name",
              [&](sqlite::Statement& row) { names.push_back(row.text(0)); });
  return names;
}

std::vector<Setting> Reader::settings() const {
  std::vector<Setting> settings;
  impl_->each("SELECT knob, value, source, location FROM settings ORDER BY rowid", [&](sqlite::Statement& row) {
    settings.push_back({row.text(0), row.text(1), row.text(2), row.text(3)});
  });
  return settings;
}

std::vector<Note> Reader::notes() const {
  std::vector<Note> notes;
  impl_->each("SELECT t_ns, process, body FROM notes ORDER BY rowid", [&](sqlite::Statement& row) {
    notes.push_back({row.integer(0), row.integer(1), parse(impl_->file, row.text(2))});
  });
  return notes;
}

std::string Reader::output_tail(std::string_view stream) const {
  std::string bytes;
  impl_->each("SELECT bytes FROM output WHERE stream=?", [&](sqlite::Statement& row) { bytes = row.text(0); }, stream);
  return bytes;
}

std::vector<Series> Reader::all_series() const {
  std::vector<Series> all;
  impl_->each("SELECT name, unit, subject FROM series ORDER BY id",
              [&](sqlite::Statement& row) { all.push_back({row.text(0), row.text(1), row.text(2)}); });
  return all;
}

std::vector<Point> Reader::points(const Series& series) const {
  std::vector<Point> points;
  // A join would sort what the key of the table has in order.
  impl_->each(
      "SELECT t_ns, value FROM points WHERE series=(SELECT id FROM series WHERE name=? AND unit=? AND subject=?) "
      "ORDER BY t_ns",
      [&](sqlite::Statement& row) { points.push_back({row.integer(0), row.real(1)}); }, series.name, series.unit,
      series.subject);
  return points;
}

std::optional<ResumePoint> Reader::resume_point() const {
  if (impl_->db.query_integer("PRAGMA user_version") != kSchemaVersion) {
    return std::nullopt;
  }
  ResumePoint point;
  impl_->each("SELECT file, process, process_start, started_ns, taken FROM positions", [&](sqlite::Statement& row) {
    point.positions.push_back({row.text(0), row.integer(1), row.integer(2), row.integer(3), row.integer(4)});
  });
  impl_->each("SELECT process, MAX(idx) FROM steps GROUP BY process",
              [&](sqlite::Statement& row) { point.last_steps[row.integer(0)] = row.integer(1); });
  impl_->each("SELECT process FROM steps UNION SELECT process FROM notes",
              [&](sqlite::Statement& row) { point.processes.insert(row.integer(0)); });
  return point;
}

}  // namespace unidle::record
