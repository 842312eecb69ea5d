#include "unidle/data/tables/chunks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/csv_rows.h"

namespace unidle::data::tables {
namespace {

class ChunksTest : public ::testing::Test {
 protected:
  CsvLayout layout_of(const std::string& text) {
    const std::string path = (folder_.path() / "a.csv").string();
    std::ofstream(path, std::ios::binary) << text;
    CsvLayout layout;
    layout.columns = {"a"};
    layout.parts.push_back({path, text.size(), 0});
    return layout;
  }

  TemporaryFolder folder_;
};

using CsvRecords = std::vector<std::vector<std::string>>;

CsvRecords csv_records(std::string_view text) {
  CsvRecords records;
  CsvRows rows(text, "a.csv");
  while (rows.next()) {
    records.push_back(rows.fields());
  }
  return records;
}

CsvRecords records_in_chunks(const CsvLayout& layout, std::size_t chunk_bytes) {
  Chunks chunks(layout, chunk_bytes);
  Chunk chunk;
  CsvRecords records;
  while (chunks.next(chunk)) {
    for (std::vector<std::string>& record : csv_records(chunk.text)) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

TEST_F(ChunksTest, RecordsAreTheSameHoweverTheFileIsCut) {
  const std::string text =
      "1,\"two\nlines\",3\r\n\"a \"\"quoted\"\" word\",,\n\n\"\",\"\"\"\",x\n5\" "
      "pipe,\"\r\n\",\"\"\"\n\"\"\"\nlast,\"no "
      "line end\"";
  const CsvRecords expected = csv_records(text);
  ASSERT_EQ(expected.size(), 5U);
  const CsvLayout layout = layout_of(text);
  for (std::size_t bytes = 1; bytes <= text.size() + 1; ++bytes) {
    ASSERT_EQ(records_in_chunks(layout, bytes), expected) << bytes;
  }
}

TEST_F(ChunksTest, RecordsOfAnyTextAreTheSameHoweverTheFileIsCut) {
  std::mt19937 random(7);
  int tried = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t length = random() % 40; length > 0; --length) {
      text += std::string_view("\"\"\n,a\r")[random() % 6];
    }
    text += text.ends_with('\r') ? "\n" : "";  // it ends a line there, together with the final line feed
    CsvRecords expected;
    try {
      expected = csv_records(text);
    } catch (const Error&) {
      continue;  // not CSV
    }
    ++tried;
    const CsvLayout layout = layout_of(text);
    for (const std::size_t bytes : {1, 2, 3, 7, 64}) {
      ASSERT_EQ(records_in_chunks(layout, bytes), expected) << bytes << ": " << text;
    }
  }
  EXPECT_GT(tried, 200);
}

TEST_F(ChunksTest, ManyThreadsGetEachRecordOnce) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += i % 3 == 0 ? std::to_string(i) + "\n" : "\"" + std::to_string(i) + "\n\"\n";
  }
  const CsvLayout layout = layout_of(text);
  Chunks chunks(layout, 100);
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::string>> got;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        Chunk chunk;
        while (chunks.next(chunk)) {
          const std::lock_guard lock(mutex);
          got.emplace_back(chunk.number, chunk.text);
        }
      });
    }
  }
  std::sort(got.begin(), got.end());
  std::string all;
  for (const auto& [number, part] : got) {
    all += part;
  }
  EXPECT_EQ(all, text);
}

TEST_F(ChunksTest, AnOpenQuoteIsLeftToTheReader) {
  const std::string text = "1\n\"2\n\"\n3,\"x\ny\nz";
  const CsvLayout layout = layout_of(text);
  for (const std::size_t bytes : {1, 5, 1000}) {
    Chunks chunks(layout, bytes);
    Chunk chunk;
    std::string all;
    while (chunks.next(chunk)) {
      all += chunk.text;
    }
    EXPECT_EQ(all, text + "\n") << bytes;
  }
}

TEST_F(ChunksTest, ARecordWithoutEndIsAnErrorWhereItsQuoteOpened) {
  const CsvLayout layout = layout_of("1\n2,\"" + std::string(Chunks::kMostRecordBytes + (std::size_t{5} << 20), '\n'));
  Chunks chunks(layout);
  Chunk chunk;
  try {
    chunks.next(chunk);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.subject(), layout.parts[0].path + ":2");
  }
  EXPECT_FALSE(chunks.next(chunk));
}

TEST_F(ChunksTest, AFileThatBecameShorterIsAnError) {
  CsvLayout layout = layout_of("1\n2\n");
  Chunks chunks(layout);
  write_file_atomic(layout.parts[0].path, "1\n");
  Chunk chunk;
  EXPECT_THROW(chunks.next(chunk), Error);
}

}  // namespace
}  // namespace unidle::data::tables
