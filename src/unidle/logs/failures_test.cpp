// How a run ended, for whole logs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "unidle/logs/text_log.h"

namespace unidle::logs {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TextLog told_by(std::string_view bytes) {
  Source source("run.log", bytes);
  return read_text_log(source);
}

/// The message of the decisive failure; empty if there is none after which nothing continued.
std::string end_of(const TextLog& log) {
  const Failure* failure = decisive_failure(log).failure;
  return failure == nullptr ? "" : failure->message;
}
std::string end_of(std::string_view bytes) { return end_of(told_by(bytes)); }

std::string steps(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) {
    text += fmt::format("2024-03-05 {:02}:{:02}:{:02} step {}/400 loss 0.5\n", 10 + i / 3600, i / 60 % 60, i % 60, i);
  }
  return text;
}

const std::string kHeader = "Traceback (most recent call last):\n  File \"a.py\", line 1\n";

TEST(Failures, ATracebackBehindAClaim) {
  const TextLog log = told_by(
      "epoch 1 loss 0.5\n"
      "[rank0]: Traceback (most recent call last):\n"
      "[rank0]:   File \"/home/ada/train.py\", line 7, in main\n"
      "[rank0]:     raise RuntimeError\n"
      "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
      "✅ 实验成功完成！\n");
  ASSERT_THAT(log.failures, SizeIs(1));
  const Failure& failure = log.failures.front();
  EXPECT_THAT(failure.quote.text, HasSubstr("\n  File \"/home/ada/train.py\", line 7"));
  EXPECT_THAT(failure.message, HasSubstr("torch.OutOfMemoryError: CUDA out of memory"));
  EXPECT_EQ(failure.quote.line, 2U);
  EXPECT_EQ(progress_after(log, failure.quote), 0);
  EXPECT_EQ(failure.facts.lack, Lack::kDeviceMemory);
  EXPECT_EQ(failure.facts.rank, 0);
  ASSERT_TRUE(log.claim);
  EXPECT_EQ(log.claim->line, 6U);
}

TEST(Failures, WhatIsDrawnOrToldOnceMoreIsNoProgress) {
  const std::string bar = " 52%|#####     | 260/500 [11:57<11:22,  2.84s/it]";
  const TextLog log = told_by(bar + "\r" + kHeader + "OSError: Disk quota exceeded\n" + bar +
                              "\nwandb: Run summary:\nwandb:   train/global_step 260\nwandb: train/loss 1.4358\n");
  ASSERT_THAT(log.failures, SizeIs(1));
  EXPECT_EQ(progress_after(log, log.failures.front().quote), 0);
  EXPECT_EQ(log.loss_lines, 0);
}

TEST(Failures, FramesOfCppAreNoMessage) {
  EXPECT_EQ(end_of("step 1 loss 0.5\n\n--------------------------------------\nC++ Traceback (most recent call last):\n"
                   "--------------------------------------\n0   paddle::memory::Free()\n\n----------------------\n"
                   "Error Message Summary:\n----------------------\nFatalError: `Termination signal` is detected.\n"),
            "FatalError: `Termination signal` is detected.");
}

TEST(Failures, WhatSucceedsOnTheWayIsNoClaim) {
  for (const char* line : {"I dso_loader.cc:139] successfully opened CUDA library libcupti.so.8.0 locally",
                           "successful NUMA node read from SysFS had negative value (-1)", "Model loaded successfully",
                           "Connected successfully!", "End of training epoch 3"}) {
    EXPECT_FALSE(told_by(std::string("epoch 1 loss 0.5\n") + line + "\n").claim) << line;
  }
  for (const char* line :
       {"Training completed successfully!", "INFO end of training", "300 epochs completed in 3.1 hours.",
        "{'train_runtime': 919.5, 'epoch': 1.0}", "`Trainer.fit` stopped: `max_epochs=5` reached.",
        "Training of experiment is done and the best AP is 90.00"}) {
    const TextLog log = told_by(std::string(line) + "\n");
    EXPECT_TRUE(log.claim) << line;
    EXPECT_TRUE(log.claim_names_training || log.claim->text.find("success") != std::string::npos) << line;
  }
}

TEST(Failures, APartThatFailedTakesTheClaimBack) {
  EXPECT_FALSE(told_by("step 1 loss 0.5\nTraining complete\nExperiment 2 failed!\n").claim);
  EXPECT_TRUE(told_by("step 1 loss 0.5\nTraining complete\nwandb: failed to upload 1 file\n").claim);
}

TEST(Failures, AStartThatCameToNothingIsNoStartUpOfTheNext) {
  const TextLog log = told_by("2025-01-01 10:00:00 start\n" + kHeader + "KeyError: 'a'\n2025-01-01 11:00:00 start\n" +
                              "2025-01-01 11:00:30 " + kHeader + "KeyError: 'b'\n2025-01-01 12:00:00 start\n" +
                              "2025-01-01 12:00:30 step 1 loss 0.5\n2025-01-01 12:01:30 step 2 loss 0.4\n");
  EXPECT_DOUBLE_EQ(log.phases.startup_s, 3600);  // since the last failure
  EXPECT_DOUBLE_EQ(log.phases.away_s, 3630);
}

TEST(Failures, OfOneProcessTheLastCountsUnlessItOnlyWraps) {
  EXPECT_EQ(
      end_of(kHeader + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" +
             kHeader + "ValueError: b\n" + kHeader +
             "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"),
      "ValueError: b");
  EXPECT_EQ(end_of("Exception ignored in: <function a>\n" + kHeader + "TypeError: x\n"), "");
  EXPECT_EQ(end_of(kHeader), "a traceback that was cut off");
}

TEST(Failures, TracebacksOfRanksMayBeInterleaved) {
  const TextLog log = told_by(
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"train.py\", line 50, in <module>\n[rank1]:   File \"data.py\", line 9, in get\n"
      "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n"
      "[rank1]: KeyError: 4711\n");
  ASSERT_THAT(log.failures, SizeIs(2));
  EXPECT_EQ(end_of(log), "KeyError: 4711");
  EXPECT_THAT(decisive_failure(log).failure->quote.text, HasSubstr("data.py"));
  EXPECT_EQ(decisive_failure(log).failure->facts.rank, 1);
}

TEST(Failures, OfSeveralProcessesTheFirstCounts) {
  const auto failed = [](int rank, std::string_view message) {
    return fmt::format(
        "[rank{0}]: Traceback (most recent call last):\n[rank{0}]:   File \"a.py\", line 1\n[rank{0}]: {1}\n", rank,
        message);
  };
  EXPECT_EQ(end_of(failed(1, "KeyError: 4711") + failed(0, "ValueError: no batch")), "KeyError: 4711");
  EXPECT_EQ(end_of(failed(0, "RuntimeError: Connection closed by peer") + failed(1, "KeyError: 4711")),
            "KeyError: 4711");
  // torchrun knows which rank failed first.
  EXPECT_EQ(
      end_of(failed(0, "ValueError: no batch") + failed(1, "KeyError: 4711") +
             "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 7)\n"),
      "KeyError: 4711");
  // Other ranks may still be at their step when one fails.
  EXPECT_EQ(end_of("step 1 loss 0.5\n" + failed(1, "KeyError: 4711") + "step 2 loss 0.5\n" +
                   failed(0, "RuntimeError: Connection closed by peer")),
            "KeyError: 4711");
}

TEST(Failures, ASignalThatLaunchersTell) {
  const TextLog log = told_by(
      "step 1 loss 0.5\n" + kHeader + "RuntimeError: [pair.cc:538] Read error [::1]:4711: Connection reset by peer\n" +
      kHeader +
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\ntrain.py FAILED\n-----\nFailures:\n"
      "[1]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 752)\n  traceback : To enable traceback see: docs\n"
      "-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-23_23:10:29\n  host      : n1\n"
      "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 753)\n  error_file: <N/A>\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 753\n=====\n");
  ASSERT_NE(decisive_failure(log).failure, nullptr);
  EXPECT_EQ(decisive_failure(log).failure->facts.signal, 9);
  EXPECT_EQ(decisive_failure(log).failure->facts.rank, 1);
  const TextLog horovod = told_by(
      "[0]<stderr>:RuntimeError: check_rank and exit\n[0]<stderr>:Killed\n[1]<stderr>:Aborted (core dumped)\n"
      "Process 0 exit with status code 137.\nProcess 1 exit with status code 134.\n");
  EXPECT_EQ(end_of(horovod), "Killed");
  EXPECT_EQ(decisive_failure(horovod).failure->facts.rank, 0);
}

TEST(Failures, ACollectiveThatTimedOutIsAllThatIsKnown) {
  const TextLog log = told_by(
      "step 1 loss 0.5\n[rank1]:[E305 10:33:21.512 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
      "operation "
      "timeout: WorkNCCL(SeqNum=4211, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800032 milliseconds before "
      "timing "
      "out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n");
  EXPECT_EQ(decisive_failure(log).failure->facts.timeout_s, 1800);
}

TEST(Failures, WhatTheSchedulerSays) {
  const auto end = [](std::string_view line) {
    const TextLog log = told_by(line);
    return log.end ? log.end->end : LogEnd::kUnknown;
  };
  const std::string begin = "slurmstepd: error: *** JOB 52178 ON gpu01 CANCELLED AT 2025-08-04T15:47:39";
  EXPECT_EQ(end(begin + " DUE TO TIME LIMIT ***\n"), LogEnd::kTimeLimit);
  EXPECT_EQ(end(begin + " ***"), LogEnd::kCancelled);
  EXPECT_EQ(end(begin + " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"), LogEnd::kNodeFailed);
  EXPECT_EQ(end(begin + " DUE TO PREEMPTION ***"), LogEnd::kPreempted);
  EXPECT_EQ(end("TERM_RUNLIMIT: job killed after reaching LSF run time limit."), LogEnd::kTimeLimit);
  EXPECT_EQ(end("=>> PBS: job killed: walltime 3610 exceeded limit 3600"), LogEnd::kTimeLimit);
  EXPECT_EQ(end("the search stopped early, due to time limit"), LogEnd::kUnknown);
  const TextLog limit = told_by(begin + " DUE TO TIME LIMIT ***\n");
  EXPECT_TRUE(limit.end->t_ns);
  EXPECT_EQ(limit.job_id, 52178);
}

TEST(Failures, AnAttemptThatTrainingWentOnAfter) {
  for (const char* why : {" DUE TO TIME LIMIT", " DUE TO PREEMPTION", " DUE TO NODE FAILURE, SEE SLURMCTLD LOG", ""}) {
    const std::string line =
        fmt::format("slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-03-05T10:03:20{} ***\n", why);
    const TextLog finished = told_by(steps(0, 200) + line + steps(200, 400) + "training finished\n");
    EXPECT_FALSE(finished.end) << why;
    EXPECT_THAT(finished.earlier, SizeIs(1)) << why;
    EXPECT_TRUE(told_by(steps(0, 200) + line).end) << why;
    EXPECT_TRUE(told_by(steps(0, 200) + line + steps(200, 203)).end) << "what it still printed" << why;
    const TextLog twice =
        told_by(steps(0, 200) + line + steps(1000, 1200) +
                "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-03-05T10:20:00 DUE TO TIME LIMIT ***\n");
    EXPECT_THAT(twice.earlier, SizeIs(1));
    ASSERT_TRUE(twice.end);
    EXPECT_EQ(twice.end->end, LogEnd::kTimeLimit);
  }
}

TEST(Failures, AnAttemptIsKnownByItsLinesWhereTheyHaveNoTime) {
  const std::string line = "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-03-05T10:03:20 DUE TO TIME LIMIT ***\n";
  const auto untimed = [](int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      text += fmt::format("step {} loss 0.5\n", i);
    }
    return text;
  };
  EXPECT_TRUE(told_by(untimed(200) + line + untimed(20)).end);
  EXPECT_FALSE(told_by(untimed(200) + line + untimed(200)).end);
}

TEST(Failures, TheTimeBetweenTwoAttemptsIsNotTraining) {
  const TextLog log = told_by(
      steps(0, 200) + "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-03-05T10:03:20 DUE TO PREEMPTION ***\n" +
      steps(3600, 3700) + "training finished\n");
  EXPECT_DOUBLE_EQ(log.phases.train_s, 200 + 99);
  EXPECT_DOUBLE_EQ(log.phases.away_s, 3400);
}

TEST(Phases, APauseBetweenTwoRunsIsNotTraining) {
  const auto trained = [](const std::string& text) { return told_by(text).phases.train_s; };
  const std::string first = "2024-03-05 09:00:00 epoch 1/2\n2024-03-05 09:00:01 epoch 2/2\n";
  const auto from = [](const char* day, const char* epochs) {
    return fmt::format("2024-03-{0} 09:00:00 epoch {1}\n2024-03-{0} 09:00:01 loss 0.5\n", day, epochs);
  };
  EXPECT_DOUBLE_EQ(trained(first + from("05", "2/2")), 1);
  EXPECT_DOUBLE_EQ(trained(first + from("07", "1/2")), 1 + 1);              // it began again
  EXPECT_DOUBLE_EQ(trained(first + from("07", "3/9")), 2 * 86'400 + 1);     // it went on
  EXPECT_DOUBLE_EQ(trained(from("05", "1/2") + from("07", "1/2")), 1 + 1);  // it had not come far
  const std::string slow = "2024-03-05 09:00:00 epoch 1/2\n2024-03-06 09:00:00 epoch 2/2\n";
  EXPECT_DOUBLE_EQ(trained(slow + from("07", "1/2")), 2 * 86'400 + 1);  // as long as its epochs
}

TEST(Failures, ALineThatTellsOfOneIsNoProgressAfterIt) {
  for (const char* words :
       {"ValueError: bad batch 7 at step 120\n", "[rank0]: RuntimeError: nan loss at step 120 of epoch 3\n",
        "srun: error: n1: tasks 1-3: Out Of Memory\nsrun: Terminating job step 3495450.0\n"
        "slurmstepd: error: *** STEP 3495450.0 ON n1 CANCELLED AT 2024-03-05T10:04:22 ***\n",
        "  5%|▌   | 50/1000 [00:10<03:10,  5.00it/s]Traceback (most recent call last):\n  File \"a.py\", line 1\n"
        "ValueError: bad batch 7\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad batch 7 at step 120\n"}) {
    const TextLog log = told_by("step 1 loss 0.5\n" + std::string(words));
    ASSERT_NE(decisive_failure(log).failure, nullptr) << words;
    EXPECT_FALSE(decisive_failure(log).went_on) << words;
    EXPECT_LT(log.counter("step")->last, 1000) << words;
  }
}

TEST(Failures, AGroupOfExceptions) {
  const TextLog log = told_by(
      "step 1 loss 0.5\n"
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"a.py\", line 88, in <module>\n"
      "  | ExceptionGroup: errors (1 sub-exception)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | Traceback (most recent call last):\n"
      "    |   File \"b.py\", line 5, in f\n"
      "    | ValueError: bad\n"
      "    +------------------------------------\n");
  ASSERT_THAT(log.failures, SizeIs(2));
  EXPECT_EQ(log.failures[0].message, "ExceptionGroup: errors (1 sub-exception)");
  EXPECT_EQ(end_of(log), "ValueError: bad");
}

TEST(Failures, ATracebackInOneLineOfJson) {
  const TextLog log = told_by(
      "{\"time\": \"2024-03-05T10:03:19\", \"step\": 199, \"loss\": 0.5}\n"
      "{\"time\": \"2024-03-05T10:03:20\", \"level\": \"ERROR\", \"exc_info\": \"Traceback (most recent call "
      "last):\\n  File \\\"/home/ada/train.py\\\", line 88, in main\\nValueError: bad \\\"x\\\"\", \"pid\": 7}\n");
  ASSERT_THAT(log.failures, SizeIs(1));
  EXPECT_EQ(log.failures[0].message, "ValueError: bad \"x\"");
  EXPECT_THAT(log.failures[0].quote.text, HasSubstr("\n  File \"/home/ada/train.py\", line 88"));
  EXPECT_THAT(told_by(steps(0, 9) + "UserWarning: Traceback (most recent call last) is hidden\n").failures, SizeIs(0));
}

TEST(Failures, ATracebackInTorchrunsReport) {
  EXPECT_EQ(
      end_of(steps(0, 9) + "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
                           "  exitcode  : 1 (pid: 102)\n  error_file: /tmp/x/error.json\n"
                           "  traceback : Traceback (most recent call last):\n    File \"a.py\", line 40, in main\n"
                           "      raise ValueError(\"bad\")\n  ValueError: bad\n\n=============\n"),
      "ValueError: bad");
}

TEST(Failures, ATerminationThatAShellReportsIsAStop) {
  for (const char* line : {"Terminated\n", "job.sh: line 3:  4321 Terminated              python train.py\n",
                           "srun: error: n1: task 0: Terminated\n"}) {
    const TextLog log = told_by(steps(0, 200) + line);
    ASSERT_TRUE(log.end) << line;
    EXPECT_EQ(log.end->end, LogEnd::kCancelled) << line;
    EXPECT_FALSE(told_by(steps(0, 200) + line + steps(200, 400)).end) << line;
  }
  EXPECT_FALSE(told_by(steps(0, 200) + "Terminated 4 idle workers\n").end);
}

TEST(Failures, AreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format("step {} loss 0.5\n{}KeyError: {}\n", i, kHeader, i);
  }
  const TextLog log = told_by(text);
  EXPECT_LE(log.failures.size(), TextLog::kMostFailures);
  EXPECT_EQ(end_of(log), "KeyError: 999");
  std::string ranks = "step 1 loss 0.5\n";
  for (int rank = 0; rank < 1000; ++rank) {
    ranks += fmt::format("[rank{0}]: ValueError: of {0}\n", rank);
  }
  EXPECT_EQ(end_of(ranks), "ValueError: of 0");
}

TEST(Failures, ErrorsThatAProgramLogsAreCounted) {
  const TextLog log =
      told_by("step 1 loss 0.5\n2024-03-05 10:04:20 ERROR - one\nERROR: two\nERROR rate: no\nerror: small\n");
  EXPECT_EQ(log.error_lines, 3);
  EXPECT_TRUE(log.failures.empty());
}

}  // namespace
}  // namespace unidle::logs
