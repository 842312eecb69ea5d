#include "unidle/base/sqlite.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace unidle::sqlite {

std::string uri_of(const std::filesystem::path& path, std::string_view query) {
  std::string uri = "file://";  // an empty authority: the path may begin with two slashes
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri.append(query);
}

void disable_sqlite_memory_statistics() { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

Database::Database(std::filesystem::path path, const std::string& uri, int flags, ErrorCode failure_code,
                   std::string_view kind)
    : path_(std::move(path)), failure_code_(failure_code), kind_(kind) {
  sqlite3* db = nullptr;
  const int result = sqlite3_open_v2(uri.c_str(), &db, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  db_.reset(db);
  if (result != SQLITE_OK) {
    fail();
  }
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 2000);
}

void Database::execute(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail();
  }
}

std::int64_t Database::query_integer(std::string_view sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void Database::fail() const {
  const std::string text = db_ ? sqlite3_errmsg(db_.get()) : "out of memory";
  if (failure_code_ == ErrorCode::kIo) {
    throw Error(failure_code_, path_.string(), "cannot be written: " + text, "is the disk full or read-only?");
  }
  throw Error(failure_code_, path_.string(), fmt::format("cannot be read as a {}: {}", kind_, text));
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(database.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  check(result);
}

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) {
    database_->fail();
  }
  return result == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::optional<std::int64_t> Statement::maybe_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional(integer(column));
}

double Statement::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const { return std::string(bytes(column)); }

std::string_view Statement::bytes(int column) const {
  const void* start = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return start == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(start), static_cast<std::size_t>(size));
}

void Statement::bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_.get(), index, value)); }

void Statement::bind(int index, double value) { check(sqlite3_bind_double(statement_.get(), index, value)); }

void Statement::bind(int index, std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind(int index, Blob value) {
  // A null pointer would be bound as NULL, not as an empty blob.
  const char* bytes = value.bytes.empty() ? "" : value.bytes.data();
  check(sqlite3_bind_blob64(statement_.get(), index, bytes, value.bytes.size(), SQLITE_TRANSIENT));
}

void Statement::bind(int index, const std::optional<std::int64_t>& value) {
  check(value ? sqlite3_bind_int64(statement_.get(), index, *value) : sqlite3_bind_null(statement_.get(), index));
}

void Statement::check(int result) const {
  if (result != SQLITE_OK) {
    database_->fail();
  }
}

}  // namespace unidle::sqlite
