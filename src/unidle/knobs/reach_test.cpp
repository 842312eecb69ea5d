#include "unidle/knobs/reach.h"

#include <gmock/gmock.h>

namespace unidle::knobs {
namespace {

using ::testing::ElementsAre;

TEST(Reach, WordsOfTheCommandSayWhatCannotBeChangedInARunningProgram) {
  const ProgramCommand command = {{"python", "train.py", "--batch-size", "4", "--workers=0"}};
  const Reach found = reach(command, {{"batch.size", 16}, {"loader.workers", 2}});
  EXPECT_THAT(found.command, ElementsAre("python", "train.py", "--batch-size", "16", "--workers=0"));
  EXPECT_EQ(found.at_run_time, (Settings{{"loader.workers", 2}}));
  EXPECT_EQ(reach({{"python", "train.py", "--mixed_precision", "no"}}, {{"precision.amp", "fp16"}}).command,
            (std::vector<std::string>{"python", "train.py", "--mixed_precision", "fp16"}))
      << "it has a scaler";
  EXPECT_EQ(reach({{"python", "train.py"}}, {{"precision.amp", "fp16"}}).at_run_time,
            (Settings{{"precision.amp", "fp16"}}));
  EXPECT_EQ(reach({{"python", "train.py"}}, {{"batch.size", 16}}).at_run_time, (Settings{{"batch.size", 16}}))
      << "the shim says why not";
  EXPECT_EQ(reach({{"python", "train.py", "--log-interval", "1"}}, {{"metrics.interval", 50}}).command.back(), "50");
  EXPECT_EQ(reach({{"python", "train.py", "--log-interval", "200"}}, {{"metrics.interval", 50}}).command.back(), "200")
      << "what is read in each step is not what it logs";
  EXPECT_EQ(
      reach({{"train.py", "--batch-size", "4", "--log-interval", "200"}}, {{"metrics.interval", 50}}).command.back(),
      "200")
      << "whatever else the command says";
  EXPECT_TRUE(reaches({{"python", "train.py", "--log-interval", "1"}}, "metrics.interval", 50));
  EXPECT_FALSE(reaches({{"python", "train.py", "--log-interval", "200"}}, "metrics.interval", 50));
  EXPECT_FALSE(reaches({{"python", "train.py"}}, "metrics.interval", 50));
  EXPECT_TRUE(reaches(command, "batch.size", 8));
  EXPECT_FALSE(reaches({{"python", "train.py"}}, "batch.size", 8));
}

TEST(Reach, BatchAndAccumulationAreChangedTheSameWay) {
  const Settings changes = {{"batch.size", 16}, {"batch.accumulation", 1}};
  const std::vector<std::string> both = {"python", "train.py", "--batch-size", "4", "--accumulation-steps", "4"};
  EXPECT_EQ(reach({both}, changes).command.back(), "1");
  EXPECT_TRUE(reach({both}, changes).at_run_time.empty());
  const std::vector<std::string> one = {"python", "train.py", "--batch-size", "4"};
  EXPECT_EQ(reach({one}, changes).command, one) << "the count stands in the program: the size is changed there too";
  EXPECT_EQ(reach({one}, changes).at_run_time, changes);
}

TEST(Reach, AnOptionThatSaysWhatIsInEffectGetsTheNewValue) {
  const ProgramCommand said = {{"python", "train.py", "--workers", "10"}, {{"loader.workers", 10}}};
  EXPECT_EQ(run_command(said, {{"loader.workers", 1}}), "python train.py --workers 1");
  const ProgramCommand omitted = {
      {"python", "train.py"}, {{"loader.workers", 10}}, {{"loader.workers", {"--workers", "10"}}}};
  EXPECT_EQ(run_command(omitted, {{"loader.workers", 0}}), "python train.py --workers 0");
  EXPECT_EQ(run_command(said, {{"loader.workers", 1}, {"optimizer.fused", true}}),
            "unidle run --apply optimizer.fused=true -- python train.py --workers 1");
}

TEST(Reach, AnOptionWithAnotherValueThanTheOneInEffectMeansSomethingElse) {
  const ProgramCommand program = {{"python", "my train.py", "--workers", "10"}, {{"loader.workers", 2}}};
  EXPECT_EQ(run_command(program, {{"loader.workers", 1}}),
            "unidle run --apply loader.workers=1 -- python 'my train.py' --workers 10");
  const ProgramCommand of_validation = {{"python", "train.py", "--val-workers", "4"}, {{"loader.workers", 4}}};
  EXPECT_EQ(run_command(of_validation, {{"loader.workers", 1}}),
            "unidle run --apply loader.workers=1 -- python train.py --val-workers 4");
}

TEST(Reach, AnOptionGetsTheNewValueInItsOwnWords) {
  const ProgramCommand program = {{"python", "train.py", "--mixed_precision", "no"}, {{"precision.amp", "off"}}};
  EXPECT_EQ(run_command(program, {{"precision.amp", "bf16"}}), "python train.py --mixed_precision bf16");
  const ProgramCommand flag = {{"python", "train.py", "--pin-memory"}, {{"loader.pin_memory", true}}};
  EXPECT_EQ(run_command(flag, {{"loader.pin_memory", false}}), "python train.py");
}

TEST(Reach, OmittedOptionsAreSaidWhereAChangeNeedsThem) {
  ProgramCommand program = {{"python", "train.py"}};
  program.omitted = {{"batch.size", {"--batch-size", "64"}}, {"optimizer.lr", {"--lr", "0.1"}}};
  const Settings changes = {{"batch.size", 128}, {"loader.workers", 2}};
  EXPECT_THAT(reach(program, changes).command, ElementsAre("python", "train.py", "--batch-size", "128"));
  program.words.push_back("--batch_size=8");
  EXPECT_THAT(reach(program, changes).command, ElementsAre("python", "train.py", "--batch_size=128"));
  EXPECT_THAT(reach(program, {}).command, ElementsAre("python", "train.py", "--batch_size=8"));
  EXPECT_EQ(value_said(program, "batch.size"), 8);
  EXPECT_EQ(value_said(program, "optimizer.lr"), 0.1);
}

}  // namespace
}  // namespace unidle::knobs
