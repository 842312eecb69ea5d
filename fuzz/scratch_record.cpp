#include "scratch_record.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "fuzz.h"
#include "unidle/base/clock.h"
#include "unidle/base/sqlite.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/record/detail/schema.h"

namespace unidle::fuzz {

namespace fs = std::filesystem;

namespace {

fs::path fresh_folder() {
  fs::path folder = scratch_folder() / "record";
  for (const char* file : {"record.db", "record.db-wal", "record.db-shm"}) {
    fs::remove(folder / file);
  }
  make_folders(folder);
  return folder;
}

/// Tables and the number of their columns.
const std::map<std::string, int, std::less<>>& tables() {
  static const std::map<std::string, int, std::less<>> kTables = {
      {"meta", 2},  {"steps", 15}, {"spans", 5},  {"sample_work", 7}, {"metrics", 5},  {"settings", 4},
      {"notes", 3}, {"output", 2}, {"series", 4}, {"points", 3},      {"positions", 5}};
  return kTables;
}

/// The bytes of a record without rows.
const std::string& empty_record() {
  static const std::string kBytes = [] {
    const fs::path file = scratch_folder() / "empty.db";
    {
      sqlite::Database db(file, file.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ErrorCode::kIo);
      db.execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", record::kApplicationId,
                             record::kSchemaVersion)
                     .c_str());
      db.execute(record::kSchemaSql);
    }
    return read_file(file);
  }();
  return kBytes;
}

/// With \n as a line's end.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool newline = text.substr(i, 2) == "\\n";
    out += newline ? '\n' : text[i];
    i += newline ? 1 : 0;
  }
  return out;
}

template <typename Number>
bool is_number(std::string_view cell, Number& value) {
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return failure == std::errc() && end == cell.data() + cell.size() && !cell.empty();
}

void bind(sqlite3_stmt* statement, int column, std::string_view cell, bool blob) {
  sqlite3_int64 integer = 0;
  double real = 0;
  if (blob) {
    const std::string bytes = unescaped(cell);
    sqlite3_bind_blob(statement, column, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
  } else if (cell == "null") {
    sqlite3_bind_null(statement, column);
  } else if (std::int64_t value = 0; is_number(cell, value)) {
    integer = value;
    sqlite3_bind_int64(statement, column, integer);
  } else if (is_number(cell, real)) {
    sqlite3_bind_double(statement, column, real);
  } else {
    sqlite3_bind_text(statement, column, cell.data(), static_cast<int>(cell.size()), SQLITE_TRANSIENT);
  }
}

void insert(sqlite::Database& db, std::string_view line) {
  auto [name, rest] = split(line, "\t");
  const auto table = tables().find(name);
  if (table == tables().end()) {
    return;
  }
  std::string sql = fmt::format("INSERT INTO {} VALUES (?", name);
  for (int i = 1; i < table->second; ++i) {
    sql += ",?";
  }
  sqlite3_stmt* statement = nullptr;
  require(sqlite3_prepare_v2(db.get(), (sql + ")").c_str(), -1, &statement, nullptr) == SQLITE_OK);
  for (int i = 1; i <= table->second; ++i) {
    const auto [cell, behind] = split(rest, "\t");
    bind(statement, i, cell, name == "output" && i == 2);
    rest = behind;
  }
  sqlite3_step(statement);  // refused by the schema: such a row is in no record
  sqlite3_finalize(statement);
}

}  // namespace

ScratchRecord::ScratchRecord() : writer_(std::in_place, fresh_folder()) {
  writer_->set_meta(record::meta::kStartNs, kNsPerSecond);
  writer_->set_meta(record::meta::kEndNs, 100 * kNsPerSecond);
  writer_->set_meta(record::meta::kExit, {{"code", 0}, {"signal", 0}});
  writer_->set_meta(record::meta::kHost, {{"cpus_allowed", 4}, {"cpu_quota", nullptr}, {"cpu_flags", {"avx2"}}});
  writer_->set_meta(record::meta::kGpus, nlohmann::json::array());
}

void ScratchRecord::diagnose() {
  writer_.reset();
  diagnose_record(scratch_folder() / "record");
}

fs::path write_rows(std::string_view lines) {
  const fs::path folder = fresh_folder();
  const fs::path file = put("record/record.db", empty_record());
  sqlite::Database db(file, file.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo);
  db.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;");
  for (const std::string_view line : lines_of(lines)) {
    insert(db, line);
  }
  db.execute("COMMIT");
  return folder;
}

void diagnose_record(const fs::path& folder) {
  may_refuse([&] {
    for (const Language language : {Language::kEnglish, Language::kChinese}) {
      const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(folder, {}, language);
      require(!diagnose::to_text(diagnosis, 80, false, language).empty());
      diagnose::to_json(diagnosis);
    }
  });
}

}  // namespace unidle::fuzz
