#include "unidle/diagnose/detail/try_command.h"

#include <gtest/gtest.h>

namespace unidle::diagnose::detail {
namespace {

Diagnosis of_command(std::vector<std::string> words) {
  Diagnosis diagnosis;
  diagnosis.command = std::move(words);
  return diagnosis;
}

Finding with_workers(std::optional<knobs::Value> from, std::int64_t to) {
  Finding finding;
  finding.fixes.push_back(knobs::change_of("loader.workers", std::move(from), to, "fewer"));
  return finding;
}

TEST(TryCommand, ChangesTheProgramsOwnOption) {
  const Diagnosis diagnosis = of_command({"python", "train.py", "--workers", "10"});
  EXPECT_EQ(try_command(diagnosis, with_workers(10, 1)), "python train.py --workers 1");
  EXPECT_EQ(try_command(diagnosis, with_workers(2, 1)),
            "unidle run --apply loader.workers=1 -- python train.py --workers 10")
      << "the option is of something else";
}

TEST(TryCommand, KeepsTheOptionsOfTheRun) {
  Diagnosis diagnosis = of_command({"python", "train.py"});
  diagnosis.run_options = {200, {}, {{"loader.workers", 1}, {"precision.amp", "bf16"}}};
  EXPECT_EQ(try_command(diagnosis, with_workers(1, 2)),
            "unidle run --steps 200 --apply precision.amp=bf16 --apply loader.workers=2 -- python train.py");
  diagnosis.command = {"python", "train.py", "--workers", "1"};
  diagnosis.run_options = {200, {}, {}};
  EXPECT_EQ(try_command(diagnosis, with_workers(1, 2)), "unidle run --steps 200 -- python train.py --workers 2")
      << "without them the run would be longer";
}

TEST(TryCommand, IsAWordOfAWorkload) {
  EXPECT_EQ(try_command(of_command({"unidle", "train", "naive.yaml"}), with_workers(0, 2)),
            "unidle train naive.yaml loader.workers=2");
}

TEST(TryCommand, IsNoneWithoutACommandOrAFix) {
  EXPECT_FALSE(try_command({}, with_workers(0, 2)));
  EXPECT_FALSE(try_command(of_command({"python", "train.py"}), {}));
}

TEST(TryCommand, AValueThatTheKnobDoesNotHaveIsNoObstacle) {
  Finding finding = with_workers(2, 1);
  finding.fixes.front().from = "many";
  EXPECT_EQ(try_command(of_command({"python", "train.py"}), finding),
            "unidle run --apply loader.workers=1 -- python train.py");
}

}  // namespace
}  // namespace unidle::diagnose::detail
