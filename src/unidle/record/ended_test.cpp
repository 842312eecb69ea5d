#include "unidle/record/detail/ended.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/sqlite.h"
#include "unidle/record/record.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;

class Ended : public ::testing::Test {
 protected:
  Ended() {
    testing::write_sample(record_, 10);
    Writer writer(record_, Begin::kResume);
    writer.set_meta(meta::kStartNs, 5'000'000'000);
    writer.set_meta(meta::kEndNs, 7'000'000'000);
    writer.set_meta(meta::kOutcome, "completed");
  }
  TemporaryFolder folder_;
  fs::path record_ = folder_.path() / "a record, 100%?";
  fs::path file_ = record_ / "record.db";
};

TEST_F(Ended, SaysWhatTheReaderSays) {
  const auto values = meta_of_ended(record_);
  ASSERT_TRUE(values);
  const Reader reader(record_);
  for (const std::string_view key :
       {meta::kCommand, meta::kStartedUtc, meta::kStartNs, meta::kEndNs, meta::kExit, meta::kOutcome, meta::kTier}) {
    const auto found = values->find(std::string(key));
    EXPECT_EQ(found == values->end() ? std::nullopt : std::optional(found->second), reader.meta(key)) << key;
  }
}

TEST_F(Ended, WhatIsStillWrittenToIsNotForIt) {
  {
    Writer writer(record_, Begin::kResume);
    EXPECT_FALSE(meta_of_ended(record_));
  }
  EXPECT_TRUE(meta_of_ended(record_));
  const fs::path live = folder_.path() / "live";
  Writer writer(live);
  writer.set_meta(meta::kOutcome, "completed");
  writer.flush();
  EXPECT_FALSE(meta_of_ended(live));
}

TEST_F(Ended, ARecordWithoutItsEndIsNotForIt) {
  const fs::path without = folder_.path() / "without";
  Writer(without).set_meta(meta::kOutcome, "completed");
  EXPECT_FALSE(meta_of_ended(without));
}

TEST_F(Ended, WhatWasLeftBesideItIsForTheReader) {
  std::ofstream(file_.string() + "-journal") << "of a killed writer";
  EXPECT_FALSE(meta_of_ended(record_));
}

TEST_F(Ended, WhatIsNoRecordInOrderIsForTheReader) {
  EXPECT_FALSE(meta_of_ended(folder_.path() / "nothing"));
  const std::string whole = read_file(file_);
  write_file_atomic(file_, whole.substr(0, whole.size() - 10));
  EXPECT_FALSE(meta_of_ended(record_));
  write_file_atomic(file_, "text");
  EXPECT_FALSE(meta_of_ended(record_));
  write_file_atomic(file_, whole);
  sqlite::Database(file_, file_.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo).execute("PRAGMA user_version=99");
  EXPECT_FALSE(meta_of_ended(record_));
}

TEST_F(Ended, DamagedValuesAreForTheReader) {
  sqlite::Database(file_, file_.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo)
      .execute("UPDATE meta SET value='{' WHERE key='command'");
  EXPECT_FALSE(meta_of_ended(record_));
}

}  // namespace
}  // namespace unidle::record
