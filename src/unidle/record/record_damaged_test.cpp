// Files that are not a record, or not a whole one.
#include <gmock/gmock.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/sqlite.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/record/record.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::read_all;
using testing::write_sample;
using unidle::testing::code_of;

TEST(Record, TruncatedAnywhereIsInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path() / "whole");
  const std::string bytes = read_file(folder.path() / "whole/record.db");
  ASSERT_GT(bytes.size(), 12U * 4096);
  for (std::size_t keep = 0; keep < bytes.size(); keep += 1500) {
    const fs::path path = folder.path() / "cut.db";
    std::ofstream(path, std::ios::binary) << bytes.substr(0, keep);
    std::string subject;
    EXPECT_EQ(code_of([&] { read_all(path); }, &subject), ErrorCode::kInput) << keep;
    EXPECT_THAT(subject, HasSubstr("cut.db"));
  }
}

TEST(Record, DamagedBytesNeverDoWorseThanAnInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path() / "whole");
  const std::string bytes = read_file(folder.path() / "whole/record.db");
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 211) {
    std::string damaged = bytes;
    damaged.replace(at, 16, std::string("\xff\x00\x80\x7f\xff\xff\xff\xff\x01\x00\x00\x00\xaa\x55\xaa\x55", 16));
    const fs::path path = folder.path() / "damaged.db";
    std::ofstream(path, std::ios::binary) << damaged.substr(0, bytes.size());
    try {
      read_all(path);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kInput) << at;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Record, WhatIsNoRecordIsInputError) {
  const TemporaryFolder folder;
  std::string subject;
  EXPECT_EQ(code_of([&] { Reader(folder.path() / "none"); }, &subject), ErrorCode::kInput);
  EXPECT_THAT(subject, HasSubstr("none"));
  EXPECT_EQ(code_of([&] { Reader(folder.path()); }), ErrorCode::kInput);
  std::ofstream(folder.path() / "text") << std::string(10'000, 'x');
  EXPECT_EQ(code_of([&] { Reader(folder.path() / "text"); }), ErrorCode::kInput);
  const fs::path foreign = folder.path() / "foreign.db";
  sqlite::Database(foreign, foreign.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ErrorCode::kIo)
      .execute("CREATE TABLE meta (key, value)");
  EXPECT_EQ(code_of([&] { Reader{foreign}; }), ErrorCode::kInput);
}

TEST(Record, ADeepValueIsInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  const fs::path path = folder.path() / "record.db";
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  sqlite::Database(path, path.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo)
      .execute(("INSERT INTO notes VALUES (1, 0, '" + deep + "'); INSERT OR REPLACE INTO meta VALUES ('host', '" +
                deep + "')")
                   .c_str());
  const Reader reader(path);
  EXPECT_EQ(code_of([&] { reader.notes(); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { reader.meta("host"); }), ErrorCode::kInput);
}

TEST(Record, NewerSchemaIsRefusedAndNamed) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  const fs::path path = folder.path() / "record.db";
  sqlite::Database(path, path.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo).execute("PRAGMA user_version=99");
  try {
    const Reader reader(path);
    FAIL() << "a newer schema was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.message(), HasSubstr("99"));
  }
}

}  // namespace
}  // namespace unidle::record
