// RAII for SQLite: a connection and its prepared statements, for all modules with a database. Failures are
// unidle::Error naming the file.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"

namespace unidle::sqlite {

struct DatabaseTraits {
  using Type = sqlite3*;
  static Type invalid() { return nullptr; }
  static void close(Type db) { sqlite3_close_v2(db); }
};

struct StatementTraits {
  using Type = sqlite3_stmt*;
  static Type invalid() { return nullptr; }
  static void close(Type statement) { sqlite3_finalize(statement); }
};

/// Bytes to bind as a BLOB instead of text.
struct Blob {
  std::string_view bytes;
};

/// Suffixes of the files that a killed writer or a full disk leaves: the log with changes that are not in the file yet,
/// and the journal of changes to roll back.
inline constexpr std::array kLeftovers = {"-wal", "-journal"};

/// The path as a URI for SQLITE_OPEN_URI. `query`: "?immutable=1" or empty.
std::string uri_of(const std::filesystem::path& path, std::string_view query);

/// Turns off SQLite's memory statistics. They use one lock for all threads, which takes much of the time to open a
/// small file. Only for programs, before any other call of SQLite.
void disable_sqlite_memory_statistics();

/// A connection. Not thread-safe. Every failure throws an Error with `failure_code` and the subject `path`.
class Database {
 public:
  /// `uri`: what SQLite opens ("file:...?immutable=1" or a plain path). `kind`: the expected kind of file, for error
  /// messages.
  Database(std::filesystem::path path, const std::string& uri, int flags, ErrorCode failure_code,
           std::string_view kind = "SQLite database");

  void execute(const char* sql);
  /// The first column of the first row as an integer; 0 if there is no row.
  std::int64_t query_integer(std::string_view sql);
  [[noreturn]] void fail() const;
  sqlite3* get() const { return db_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  ErrorCode failure_code_;
  std::string kind_;
  UniqueHandle<DatabaseTraits> db_;
};

/// A prepared statement; must not outlive its database.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  /// Binds all parameters, runs to the end and resets: for INSERT and similar statements.
  template <typename... Values>
  void run(const Values&... values) {
    bind_all(values...);
    while (step()) {
    }
    reset();
  }

  /// Binds all parameters; step() then returns the rows.
  template <typename... Values>
  Statement& bind_all(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }

  /// True when there is a row.
  bool step();
  void reset();

  bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  bool is_text(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::optional<std::int64_t> maybe_integer(int column) const;
  /// NaN for NULL: SQLite does not store NaN.
  double real(int column) const;
  std::string text(int column) const;
  /// The bytes of a BLOB; valid until the next step() or reset().
  std::string_view bytes(int column) const;

 private:
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, Blob value);
  void bind(int index, const std::optional<std::int64_t>& value);
  void check(int result) const;

  Database* database_;
  UniqueHandle<StatementTraits> statement_;
};

}  // namespace unidle::sqlite
