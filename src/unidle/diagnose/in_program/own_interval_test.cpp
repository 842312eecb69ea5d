#include "unidle/diagnose/in_program/own_interval.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"

namespace unidle::diagnose {
namespace {

using ::testing::ElementsAre;

class OwnIntervalTest : public ::testing::Test {
 protected:
  std::optional<knobs::InProgram> change(const std::string& script, std::vector<std::string> words = {}) {
    write_file_atomic(folder_.path() / "train.py", script);
    Signals signals;
    signals.folder = folder_.path();
    signals.command = {"python", "train.py"};
    if (steps_between_ > 0) {
      signals.settings["validation.interval"].effective = std::to_string(steps_between_);
    }
    signals.command.insert(signals.command.end(), words.begin(), words.end());
    Sources sources(folder_.path());
    stops_ = may_decide_by_validation(signals, sources);
    return with_rarer_own_interval(signals, sources, 3.5);
  }
  TemporaryFolder folder_;
  bool stops_ = false;
  int steps_between_ = 0;  // validations, as the run showed; 0: not known
};

TEST_F(OwnIntervalTest, AConstant) {
  const auto found = change("import torch\nEVAL_EVERY = 20  # steps\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->words, "EVAL_EVERY = 70");
  EXPECT_EQ(found->where, "train.py:2");
  EXPECT_THAT(found->after, ElementsAre("EVAL_EVERY = 70  # steps"));
  EXPECT_FALSE(stops_);
}

TEST_F(OwnIntervalTest, ADefaultAndTheOptionThatReplacesIt) {
  const std::string script =
      "import argparse\np = argparse.ArgumentParser()\np.add_argument('--eval-every', type=int, default=2)\n";
  const auto by_default = change(script);
  ASSERT_TRUE(by_default);
  EXPECT_EQ(by_default->words, "default=7");
  EXPECT_THAT(by_default->after, ElementsAre("p.add_argument('--eval-every', type=int, default=7)"));
  EXPECT_EQ(change(script, {"--eval-every", "10"})->command, "python train.py --eval-every 35");
  EXPECT_EQ(change(script, {"--eval_every=10"})->words, "--eval_every=35");
  EXPECT_FALSE(change(script, {"--eval-ev", "10"})) << "the default is not in use";
  const std::string with_letter =
      "import argparse\np = argparse.ArgumentParser()\np.add_argument('-e', '--eval-every', type=int, default=2)\n";
  EXPECT_TRUE(change(with_letter, {"--epochs", "3"}));
  EXPECT_FALSE(change(with_letter, {"-e", "10"}));
  EXPECT_FALSE(change(with_letter, {"-e10"}));
}

TEST_F(OwnIntervalTest, OfSeveralOptionsTheOneInForce) {
  EXPECT_EQ(change("", {"--eval-every", "5", "--eval-every", "3"})->words, "--eval-every 11") << "the last one counts";
  EXPECT_FALSE(change("", {"--eval-every", "1000", "--test-freq", "3"}));
  steps_between_ = 3;
  EXPECT_EQ(change("", {"--eval-every", "1000", "--test-freq", "3"})->words, "--test-freq 11");
  EXPECT_FALSE(change("", {"--val_check_interval", "1.0"})) << "a part of an epoch";
}

TEST_F(OwnIntervalTest, StepsAreTheIntervalWhereTheRunValidatedSoOften) {
  const std::string script = "eval_steps = 10\n";
  EXPECT_FALSE(change(script)) << "it may be how many batches a validation takes";
  steps_between_ = 25;
  EXPECT_FALSE(change(script));
  EXPECT_FALSE(change("", {"--eval-steps", "10"}));
  steps_between_ = 10;
  EXPECT_EQ(change(script)->words, "eval_steps = 35");
  EXPECT_EQ(change("", {"--eval-steps", "10"})->command, "python train.py --eval-steps 35");
}

TEST_F(OwnIntervalTest, AFileOfTheCommand) {
  write_file_atomic(folder_.path() / "a.yaml", "train:\n  val_interval: 1\n");
  const auto found = change("import yaml\n", {"--config", "a.yaml"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->words, "val_interval: 4");
  EXPECT_EQ(found->where, "a.yaml:2");
}

TEST_F(OwnIntervalTest, NothingWhereItIsNotKnownWhichOne) {
  EXPECT_FALSE(change("eval_every = 20\ntest_every = 20\n"));
  EXPECT_FALSE(change("eval_every = None\n"));
  EXPECT_FALSE(change("print('no setting')\n"));
}

TEST_F(OwnIntervalTest, EarlyStoppingDependsOnIt) {
  EXPECT_TRUE(change("eval_every = 20\npatience = 3\n"));
  EXPECT_TRUE(stops_);
  change("eval_every = 20  # without patience\n");
  EXPECT_FALSE(stops_);
  change("eval_every = 20\n", {"--early-stopping=3"});
  EXPECT_TRUE(stops_);
}

TEST_F(OwnIntervalTest, TheBestCheckpointDependsOnIt) {
  change("eval_every = 20\nbest_loss = 1e9\n\nif loss < best_loss:\n    torch.save(model, 'x.pt')\n");
  EXPECT_TRUE(stops_);
  change("eval_every = 20\nfor i in range(9):\n    if loss < 0.1:\n        break\n");
  EXPECT_TRUE(stops_);
}

TEST_F(OwnIntervalTest, WhatDecidesMayBeInAFileOrInAModuleOfAModule) {
  write_file_atomic(folder_.path() / "a.yaml", "val_interval: 1\npatience: 3\n");
  change("import yaml\n", {"--config", "a.yaml"});
  EXPECT_TRUE(stops_);
  make_folders(folder_.path() / "lib");
  write_file_atomic(folder_.path() / "lib/a.py", "from .b import stop\n");
  write_file_atomic(folder_.path() / "lib/b.py", "class EarlyStopping:\n    pass\n");
  change("from lib.a import stop\neval_every = 20\n");
  EXPECT_TRUE(stops_);
}

TEST_F(OwnIntervalTest, AProgramThatCannotBeReadMayDecide) {
  Signals signals;
  signals.command = {"bash", "run.sh", "a.yaml"};
  EXPECT_TRUE(may_decide_by_validation(signals, Sources(folder_.path())));
}

TEST_F(OwnIntervalTest, NamesAreThoseBelowTheFolder) {
  change("EVAL_EVERY = 20\n");
  Signals signals;
  signals.command = {"./train.py"};
  Sources sources(folder_.path());
  EXPECT_EQ(with_rarer_own_interval(signals, sources, 2)->where, "train.py:1");
}

}  // namespace
}  // namespace unidle::diagnose
