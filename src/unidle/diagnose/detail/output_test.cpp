#include "unidle/diagnose/detail/output.h"

#include <gtest/gtest.h>

namespace unidle::diagnose::detail {
namespace {

const std::string kTraceback =
    "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    main()\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/nn/module.py\", line 5, in call\n    f()\nRuntimeError: shape\n";

TEST(FindFailure, TakesTheLastTracebackAndTheUsersOwnFrame) {
  const auto failure =
      find_failure("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n" + kTraceback);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "RuntimeError: shape");
  EXPECT_EQ(failure->where, "train.py:9");
  EXPECT_FALSE(failure->went_on);
}

TEST(FindFailure, ProgressAfterItMeansTrainingWentOn) {
  for (const char* line : {"step 40 loss 0.2", "Epoch: 3/10", "iter=7", "[batch  12]", "Iterations: 40", "3 s/it",
                           "45%| | 9/20 [00:01<00:02, 12.5it/s]"}) {
    EXPECT_TRUE(find_failure(kTraceback + line + "\n")->went_on) << line;
  }
  for (const char* line : {"Training finished successfully", "saved to epochs.pt", "epoch4 saved", "misstep 4", "steps",
                           "epoch", "it/s", "all steps done"}) {
    EXPECT_FALSE(find_failure(kTraceback + line + "\n")->went_on) << line;
  }
}

TEST(FindFailure, WhatAFailedProcessDidToOthersComesBehindIt) {
  const std::string begin = "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n";
  const std::string own =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 7, in step\n"
      "[rank1]: ValueError: no such class\n";
  const std::string peer = begin + "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:4711\n";
  const std::string launcher = begin + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n";
  for (const std::string& output : {own + peer + launcher, peer + own + launcher, own + launcher}) {
    EXPECT_EQ(find_failure(output)->message, "ValueError: no such class") << output;
    EXPECT_EQ(find_failure(output)->where, "train.py:7") << output;
  }
  EXPECT_NE(find_failure(peer + launcher)->message.find("closed by peer"), std::string::npos);
  EXPECT_EQ(blame_of(find_failure(launcher)->message), Blame::kLauncher);
}

TEST(KilledRank, IsTheOneThatTorchrunNamesFirst) {
  const std::string of_torchrun =
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\ntrain.py FAILED\n-----\nFailures:\n"
      "[1]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 752)\n  traceback : To enable traceback see: docs\n"
      "-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-23_23:10:29\n  host      : n1\n"
      "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 753)\n  error_file: <N/A>\n";
  const auto killed = killed_rank(of_torchrun + "  traceback : Signal 9 (SIGKILL) received by PID 753\n=====\n");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 1);
  EXPECT_EQ(killed->signal, 9);
  EXPECT_FALSE(killed_rank(of_torchrun + "  traceback : Signal 15 (SIGTERM) received by PID 753\n"));
  EXPECT_FALSE(killed_rank(of_torchrun + "  traceback : To enable traceback see: docs\n"));
  EXPECT_FALSE(killed_rank(of_torchrun + "  traceback : Signal "));
  EXPECT_FALSE(killed_rank("Signal 9 (SIGKILL)"));
}

TEST(FindFailure, NothingInHealthyOutput) {
  EXPECT_FALSE(find_failure(""));
  EXPECT_FALSE(find_failure("epoch 1\nerror rate 0.3\nsaved\n"));
  EXPECT_FALSE(find_failure("saved\nException ignored in: <function Iter.__del__ at 0x7f>\n" + kTraceback));
}

TEST(FindFailure, OddOutputIsHarmless) {
  EXPECT_EQ(find_failure("Traceback (most recent call last):")->message, "a traceback that was cut off");
  EXPECT_FALSE(find_failure("Traceback (most recent call last):\n  File \"a.py\"\n  File \"a.py\", line x\nE")->where);
  const std::string zeros(100'000, '\0');
  EXPECT_FALSE(find_failure(zeros));
  EXPECT_TRUE(find_failure(kTraceback + std::string(1'000'000, 'x') + "\n\xff\xfe"));
}

}  // namespace
}  // namespace unidle::diagnose::detail
