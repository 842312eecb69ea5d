#include "unidle/tune/advice/reach.h"

#include <gmock/gmock.h>

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;

TEST(Reach, WordsOfTheCommandSayWhatCannotBeChangedInARunningProgram) {
  const std::vector<std::string> command = {"python", "train.py", "--batch-size", "4", "--workers=0"};
  const Reach found = reach(command, {{"batch.size", 16}, {"loader.workers", 2}});
  EXPECT_THAT(found.command, ElementsAre("python", "train.py", "--batch-size", "16", "--workers=0"));
  EXPECT_EQ(found.at_run_time, (knobs::Settings{{"loader.workers", 2}}));
  EXPECT_EQ(reach({"python", "train.py", "--mixed_precision", "no"}, {{"precision.amp", "fp16"}}).command,
            (std::vector<std::string>{"python", "train.py", "--mixed_precision", "fp16"}))
      << "it has a scaler";
  EXPECT_EQ(reach({"python", "train.py"}, {{"precision.amp", "fp16"}}).at_run_time,
            (knobs::Settings{{"precision.amp", "fp16"}}));
  EXPECT_EQ(reach({"python", "train.py"}, {{"batch.size", 16}}).at_run_time, (knobs::Settings{{"batch.size", 16}}))
      << "the shim says why not";
  EXPECT_EQ(reach({"python", "train.py", "--log-interval", "1"}, {{"metrics.interval", 50}}).command.back(), "50");
  EXPECT_EQ(reach({"python", "train.py", "--log-interval", "200"}, {{"metrics.interval", 50}}).command.back(), "200")
      << "what is read in each step is not what it logs";
  EXPECT_EQ(
      reach({"train.py", "--batch-size", "4", "--log-interval", "200"}, {{"metrics.interval", 50}}).command.back(),
      "200")
      << "whatever else the command says";
  EXPECT_TRUE(reaches({"python", "train.py", "--log-interval", "1"}, "metrics.interval", 50));
  EXPECT_FALSE(reaches({"python", "train.py", "--log-interval", "200"}, "metrics.interval", 50));
  EXPECT_FALSE(reaches({"python", "train.py"}, "metrics.interval", 50));
  EXPECT_TRUE(reaches(command, "batch.size", 8));
  EXPECT_FALSE(reaches({"python", "train.py"}, "batch.size", 8));
}

TEST(Reach, BatchAndAccumulationAreChangedTheSameWay) {
  const knobs::Settings changes = {{"batch.size", 16}, {"batch.accumulation", 1}};
  const std::vector<std::string> both = {"python", "train.py", "--batch-size", "4", "--accumulation-steps", "4"};
  EXPECT_EQ(reach(both, changes).command.back(), "1");
  EXPECT_TRUE(reach(both, changes).at_run_time.empty());
  const std::vector<std::string> one = {"python", "train.py", "--batch-size", "4"};
  EXPECT_EQ(reach(one, changes).command, one) << "the count stands in the program: the size is changed there too";
  EXPECT_EQ(reach(one, changes).at_run_time, changes);
}

}  // namespace
}  // namespace unidle::tune
