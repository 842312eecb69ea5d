#include "unidle/tune/advice/batch_advice.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"

namespace unidle::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BatchAdviceTest : public testing::Test {
 protected:
  std::string advice(const std::string& text, const std::string& loader = "train.py:2") {
    write_file_atomic(folder_.path() / "train.py", text);
    return batch_advice({{"batch.size", 4}, {"batch.accumulation", 8}}, {{"loader", loader}}, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(BatchAdviceTest, IsAPatchWhereBothLinesAreKnown) {
  const std::string found = advice("accumulation_steps = 8\nloader = DataLoader(data, batch_size=4)\n");
  EXPECT_THAT(found, HasSubstr("8 batches of 4 make a step"));
  EXPECT_THAT(found, HasSubstr("+accumulation_steps = 1\n+loader = DataLoader(data, batch_size=32)\n"));
}

TEST_F(BatchAdviceTest, NamesThePlaceWhereTheyAreNot) {
  for (const char* text : {"n = 8\nloader = DataLoader(data, batch_size=4)\n",
                           "accumulation_steps = 2\nloader = DataLoader(data, batch_size=4)\n",
                           "accumulation_steps = 8\nloader = make_loader(4)\n", "def f(:\n\n"}) {
    EXPECT_THAT(advice(text), HasSubstr("made at train.py:2")) << text;
    EXPECT_THAT(advice(text), Not(HasSubstr("+++"))) << text;
  }
  EXPECT_THAT(advice("accumulation_steps = 8\n", "/usr/lib/x.py:2"), HasSubstr("made at /usr/lib/x.py:2"));
}

TEST_F(BatchAdviceTest, SaysNothingWhereAStepHasOneBatch) {
  EXPECT_EQ(batch_advice({{"batch.size", 4}, {"batch.accumulation", 1}}, {}, folder_.path()), "");
  EXPECT_EQ(batch_advice({{"batch.size", 4}}, {}, folder_.path()), "");
  EXPECT_EQ(batch_advice({{"batch.accumulation", 4}}, {}, folder_.path()), "");
}

}  // namespace
}  // namespace unidle::tune
