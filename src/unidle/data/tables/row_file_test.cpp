#include "unidle/data/tables/row_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "unidle/base/error.h"

namespace unidle::data::tables {
namespace {

class RowFileTest : public ::testing::Test {
 protected:
  /// Rows 0 1 2, 3 4 5, ...
  void write(std::int64_t rows) {
    std::vector<float> values(static_cast<std::size_t>(rows) * 3);
    std::iota(values.begin(), values.end(), 0.0f);
    RowFileWriter writer(path_, 3, system_disk());
    const std::span<const float> all(values);
    for (std::size_t at = 0; at < values.size(); at += 3 * 1000) {  // in pieces that are not whole blocks
      writer.append(all.subspan(at, std::min<std::size_t>(3 * 1000, values.size() - at)));
    }
    writer.append_validation(std::vector<std::uint8_t>(static_cast<std::size_t>(rows), 1));
    writer.finish(
        {{{"a", 1}}, {"b"}, 2, {{.name = "x", .type = "float"}, {}, {}}, {{"out", "texts", false}}, {{"k", 3, 1}}});
  }

  void put(std::string_view bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "a.rows";
};

TEST_F(RowFileTest, GivesBackWhatWasWritten) {
  for (const std::int64_t rows : {0, 1, 999, 65535, 65536, 200'000}) {  // a block has 65536 rows
    write(rows);
    const std::unique_ptr<RowFile> file = RowFile::open(path_, system_disk());
    ASSERT_NE(file, nullptr) << rows;
    ASSERT_EQ(file->rows(), rows);
    EXPECT_EQ(file->facts().columns[0].name, "x");
    EXPECT_EQ(file->facts().features, 2U);
    EXPECT_EQ(file->facts().joins.at(0).unmatched, 1);
    EXPECT_EQ(file->validation().size(), static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(file->row(row)[2], static_cast<float>(row * 3 + 2));
    }
  }
}

TEST_F(RowFileTest, WhatIsNotFinishedIsNotThere) {
  write(2);
  {
    RowFileWriter writer(path_, 3, system_disk());
    writer.append(std::vector<float>(9));
  }
  EXPECT_EQ(RowFile::open(path_, system_disk())->rows(), 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(RowFileTest, EveryDamagedByteIsSeen) {
  write(5);
  const std::string good = read_file(path_);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    put(damaged);
    const std::unique_ptr<RowFile> file = RowFile::open(path_, system_disk());
    const bool in_rows = at < 5 * 3 * sizeof(float);
    ASSERT_EQ(file != nullptr, in_rows) << at;
    if (file) {
      EXPECT_THROW(file->row(0), Error);
      EXPECT_FALSE(std::filesystem::exists(path_));
    }
  }
}

TEST_F(RowFileTest, EveryCutFileIsSeen) {
  write(5);
  const std::string good = read_file(path_);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    put(std::string_view(good).substr(0, bytes));
    EXPECT_EQ(RowFile::open(path_, system_disk()), nullptr) << bytes;
  }
  put(good + good);  // rows that the footer does not count
  EXPECT_EQ(RowFile::open(path_, system_disk()), nullptr);
}

}  // namespace
}  // namespace unidle::data::tables
