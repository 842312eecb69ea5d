#include <gmock/gmock.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>

#include "unidle/base/files.h"
#include "unidle/probe/stretch_reader.h"
#include "unidle/probe/testing/stretch_file.h"

namespace unidle::probe {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StretchFile;

class StretchTest : public ::testing::Test {
 protected:
  std::optional<Stretch> read(const std::string& bytes) {
    const fs::path path = folder_.path() / "77.stretch";
    std::ofstream(path, std::ios::binary) << bytes;
    return read_stretch(path);
  }

  TemporaryFolder folder_;
};

TEST_F(StretchTest, CountsStepsByTheirBatches) {
  StretchFile file;
  file[6] = 40;   // first step
  file[7] = 100;  // its start
  file[8] = 5;    // wait so far, for one batch of 16
  file[9] = 16;
  file[10] = 1;
  file[11] = 2;  // batches per step
  file[12] = 16;
  file.batch(0, 110, 113).batch(1, 130, 131).batch(2, 140, 142).batch(3, 160, 161);
  const auto stretch = read(file.bytes());
  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->pid, 77);
  EXPECT_EQ(stretch->process_start, 4321U);
  const auto& steps = stretch->steps;
  ASSERT_THAT(steps, SizeIs(2));  // the third has only one of its batches
  EXPECT_EQ(steps[0].step, 40U);
  EXPECT_EQ(steps[0].t_ns, 100U);
  EXPECT_EQ(steps[0].duration_ns, 30U);
  EXPECT_EQ(steps[0].samples, 32U);
  EXPECT_EQ(steps[0].micro_batches, 2U);
  EXPECT_EQ(steps[1].t_ns, 130U);
  EXPECT_EQ(steps[1].duration_ns, 30U);
  EXPECT_EQ(steps[0].input_ns, 8U);
  EXPECT_EQ(steps[1].input_ns, 3U);
  EXPECT_EQ(steps[0].seen, static_cast<std::uint32_t>(UNIDLE_STEP_INPUT));
}

TEST_F(StretchTest, StepsThatAreMarkedEndWhereTheNextBatchIsAskedFor) {
  StretchFile file;
  file[7] = 100;
  file.batch(0, 101, 102).size(0, 4).batch(1, 111, 112).size(1, 4).batch(2, 121, 122).size(2, 3);
  file.stepped(0, 110).stepped(1, 119);
  const auto stretch = read(file.bytes());
  ASSERT_TRUE(stretch);
  const auto& steps = stretch->steps;
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].duration_ns, 11U);
  EXPECT_EQ(steps[1].duration_ns, 10U);
  EXPECT_EQ(steps[1].samples, 4U);
}

TEST_F(StretchTest, WithoutALoaderAStepEndsWithItsOptimizer) {
  StretchFile file;
  file[7] = 100;
  file[13] = 6;  // usual samples and batches
  file[14] = 1;
  file[15] = 108;  // the optimiser of the first step was called
  file.stepped(0, 118).stepped(1, 128);
  const auto stretch = read(file.bytes());
  ASSERT_TRUE(stretch);
  const auto& steps = stretch->steps;
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].duration_ns, 8U);
  EXPECT_EQ(steps[0].samples, 6U);
  EXPECT_EQ(steps[1].t_ns, 108U);
  EXPECT_EQ(steps[1].duration_ns, 10U);
}

TEST_F(StretchTest, NothingWhileNoneIsUnderWay) {
  StretchFile file;
  file[5] = 0;
  file.batch(0, 110, 113).stepped(0, 120).stepped(1, 130);
  const auto stretch = read(file.bytes());
  ASSERT_TRUE(stretch);
  EXPECT_THAT(stretch->steps, IsEmpty());
}

TEST_F(StretchTest, ForeignAndDamagedFilesAreRefusedOrHarmless) {
  StretchFile file;
  file[7] = 100;
  file[11] = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    file.batch(i, 110 + 10 * i, 112 + 10 * i).stepped(i, 111 + 10 * i);
  }
  const std::string whole = file.bytes();
  ASSERT_THAT(read(whole)->steps, SizeIs(7));
  for (std::size_t keep = 0; keep < whole.size(); keep += 8) {
    EXPECT_FALSE(read(whole.substr(0, keep))) << keep;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char bits : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ bits);
      if (const auto stretch = read(damaged)) {
        EXPECT_LE(stretch->steps.size(), 32U) << at;
      }
    }
  }
}

}  // namespace
}  // namespace unidle::probe
