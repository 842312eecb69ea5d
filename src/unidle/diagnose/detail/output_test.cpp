#include "unidle/diagnose/detail/output.h"

#include <gtest/gtest.h>

namespace unidle::diagnose::detail {
namespace {

const std::string kTraceback =
    "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    main()\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/nn/module.py\", line 5, in call\n    f()\nRuntimeError: shape\n";

std::optional<PrintedFailure> failure_of(std::string_view tail) { return end_of_output(tail).failure; }

TEST(FindFailure, TakesTheLastTracebackAndTheUsersOwnFrame) {
  const auto failure =
      failure_of("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n" + kTraceback);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "RuntimeError: shape");
  EXPECT_EQ(failure->where, "train.py:9");
  EXPECT_FALSE(failure->went_on);
}

TEST(FindFailure, ProgressAfterItMeansTrainingWentOn) {
  for (const char* line :
       {"step 40 loss 0.2", "Epoch: 3/10", "iter=7", "[batch  12]", "45%| | 9/20 [00:01<00:02, 12.5it/s]"}) {
    EXPECT_TRUE(failure_of(kTraceback + line + "\n")->went_on) << line;
  }
  for (const char* line : {"Training finished successfully", "saved to epochs.pt", "epoch4 saved", "misstep 4", "steps",
                           "epoch", "it/s", "all steps done"}) {
    EXPECT_FALSE(failure_of(kTraceback + line + "\n")->went_on) << line;
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
    EXPECT_EQ(failure_of(output)->message, "ValueError: no such class") << output;
    EXPECT_EQ(failure_of(output)->where, "train.py:7") << output;
  }
  EXPECT_NE(failure_of(peer + launcher)->message.find("closed by peer"), std::string::npos);
  EXPECT_EQ(failure_of(launcher)->facts.blame, logs::Blame::kLauncher);
}

TEST(FindFailure, TorchrunNamesTheProcessThatASignalEnded) {
  const std::string of_torchrun =
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\ntrain.py FAILED\n-----\nFailures:\n"
      "[1]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 752)\n  traceback : To enable traceback see: docs\n"
      "-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-23_23:10:29\n  host      : n1\n"
      "  rank      : 1 (local_rank: 1)\n";
  const auto killed = failure_of(of_torchrun + "  exitcode  : -9 (pid: 753)\n");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->facts.rank, 1);
  EXPECT_EQ(killed->facts.signal, 9);
  EXPECT_EQ(failure_of(of_torchrun + "  exitcode  : -15 (pid: 753)\n")->facts.signal, 0);
  EXPECT_EQ(failure_of(of_torchrun + "  exitcode  : 1 (pid: 753)\n")->facts.signal, 0);
  EXPECT_EQ(failure_of(of_torchrun + "  exitcode  : ")->facts.signal, 0);
  EXPECT_FALSE(failure_of("  exitcode  : -9 (pid: 753)\n"));
}

TEST(FindFailure, MemoryMayHaveRunOutBesideIt) {
  const PrintedEnd end = end_of_output(
      "Traceback (most recent call last):\n  File \"a.py\", line 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried "
      "to "
      "allocate 2.00 GiB.\n\nDuring handling of the above exception, another exception occurred:\n\n" +
      kTraceback);
  EXPECT_EQ(end.failure->message, "RuntimeError: shape");
  ASSERT_TRUE(end.memory);
  EXPECT_EQ(end.memory->facts.lack, logs::Lack::kDeviceMemory);
  EXPECT_FALSE(end_of_output("Set max_split_size_mb to avoid CUDA out of memory errors.\n").memory);
}

TEST(FindFailure, NothingInHealthyOutput) {
  EXPECT_FALSE(failure_of(""));
  EXPECT_FALSE(failure_of("epoch 1\nerror rate 0.3\nsaved\n"));
  EXPECT_FALSE(failure_of("saved\nException ignored in: <function Iter.__del__ at 0x7f>\n" + kTraceback));
}

TEST(FindFailure, OddOutputIsHarmless) {
  EXPECT_EQ(failure_of("Traceback (most recent call last):")->message, "a traceback that was cut off");
  EXPECT_FALSE(failure_of("Traceback (most recent call last):\n  File \"a.py\"\n  File \"a.py\", line x\nE")->where);
  const std::string zeros(100'000, '\0');
  EXPECT_FALSE(failure_of(zeros));
  EXPECT_TRUE(failure_of(kTraceback + std::string(1'000'000, 'x') + "\n\xff\xfe"));
}

}  // namespace
}  // namespace unidle::diagnose::detail
