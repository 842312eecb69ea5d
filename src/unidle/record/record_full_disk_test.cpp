// Records on a disk that refuses every write from the n-th on, for every n.
#include <gtest/gtest.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/record/record.h"
#include "unidle/record/testing/refusing_vfs.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 2;
constexpr int kRowsInRound = 12;

struct Outcome {
  int kept = 0;  // rounds whose flush succeeded
  bool failed = false;
};

/// Writes a record in rounds and flushes each.
Outcome write_rounds(const fs::path& folder) {
  Outcome outcome;
  try {
    Writer writer(folder);
    writer.commit_on_flush_only();
    for (; outcome.kept < kRounds; ++outcome.kept) {
      for (int i = 0; i < kRowsInRound; ++i) {
        writer.add(Note{i, outcome.kept, {{"type", "x"}, {"text", std::string(1000, 'x')}}});
      }
      writer.flush();
    }
  } catch (const Error& error) {
    outcome.failed = true;
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.subject(), (folder / "record.db").string());
    EXPECT_TRUE(error.message().find("full") != std::string::npos || error.message().find("I/O") != std::string::npos)
        << error.what();
  }
  return outcome;
}

TEST(Record, AtEveryWriteThatIsRefusedItHoldsWhatWasFlushed) {
  int refusals = 0;
  bool refused = true;
  for (int n = 1; refused; ++n) {
    const TemporaryFolder folder;
    const fs::path record = folder.path() / "r";
    Outcome outcome;
    {
      const testing::RefusingVfs disk(n);
      outcome = write_rounds(record);
      refused = disk.refused();
    }
    refusals += refused ? 1 : 0;
    EXPECT_TRUE(refused || outcome.kept == kRounds) << n;
    if (!fs::exists(record / "record.db")) {
      EXPECT_TRUE(outcome.failed && outcome.kept == 0) << n;
      EXPECT_TRUE(fs::is_empty(record)) << "nothing stands in the way of another record, " << n;
      continue;
    }
    SCOPED_TRACE(n);
    std::size_t rows = 0;
    ASSERT_NO_THROW(rows = Reader(record).notes().size());
    EXPECT_EQ(rows % kRowsInRound, 0U) << "a round is whole or not there, " << n;
    const auto kept = static_cast<std::size_t>(outcome.kept);
    EXPECT_GE(rows, kept * kRowsInRound) << n;
    EXPECT_LE(rows, (kept + 1) * kRowsInRound) << n;
    testing::read_all(record);
  }
  EXPECT_GT(refusals, 50);
}

}  // namespace
}  // namespace unidle::record
