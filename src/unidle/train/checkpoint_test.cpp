// Checkpoints that are damaged at any place: they are refused as input, or what they say is whole.
#include "unidle/train/checkpoint.h"

#include <gtest/gtest.h>

#include <random>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/testing/line_workload.h"

namespace unidle::train {
namespace {

/// A model with its optimiser, and one checkpoint of it.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() : optimizer_(workload_.model().parameters(), {}) {
    save_checkpoint(path_, workload_.model(), optimizer_, precision_, {40, 5});
    whole_ = read_file(path_);
  }

  /// Whether it was taken. Anything but an Error about the file is a failure of the test.
  bool taken(const std::string& bytes) {
    write_file_atomic(path_, bytes);
    try {
      const Position position = load_checkpoint(path_, workload_.model(), optimizer_, precision_);
      EXPECT_EQ(position.samples, 40);
      EXPECT_EQ(position.steps, 5);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
      EXPECT_EQ(error.subject(), path_.string());
      return false;
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "checkpoint.pt";
  testing::LineWorkload workload_;
  AdamW optimizer_;
  Precision precision_{"off", at::kCPU};
  std::string whole_;
};

TEST_F(DamagedCheckpoint, IsRefusedWhereverItIsCutOff) {
  EXPECT_TRUE(taken(whole_));
  for (std::size_t part = 0; part < 64; ++part) {
    EXPECT_FALSE(taken(whole_.substr(0, whole_.size() * part / 64))) << part;
  }
}

TEST_F(DamagedCheckpoint, NeverBringsAnythingElseWhicheverBitFlips) {
  std::mt19937_64 random(20260101);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole_;
    char& one = bytes[random() % bytes.size()];
    one = static_cast<char>(one ^ (1 << random() % 8));
    taken(bytes);
  }
}

TEST_F(DamagedCheckpoint, IsRefusedWithAPositionBeforeTheBeginning) {
  save_checkpoint(path_, workload_.model(), optimizer_, precision_, {-8, 5});
  EXPECT_FALSE(taken(read_file(path_)));
}

}  // namespace
}  // namespace unidle::train
