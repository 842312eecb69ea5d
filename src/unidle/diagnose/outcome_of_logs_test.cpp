// How a run ended, according to its logs.
#include "unidle/diagnose/signals_from_logs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/testing/log_signals.h"
#include "unidle/logs/job_files.h"

namespace unidle::diagnose::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
TEST_F(LogSignals, APersonThatInterrupts) {
  const auto asked = file("a.out", "step 1 loss 0.5\n[INFO] [launch.py:328] Main process received SIGINT, exiting\n");
  const auto broken = file("b.out",
                           "step 1 loss 0.5\nTraceback (most recent call last):\n  File \"a.py\", line 1\n"
                           "KeyboardInterrupt: \n");
  const auto ended = file("c.out",
                          "step 1 loss 0.5\nTraceback (most recent call last):\n  File \"a.py\", line 1\n"
                          "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15\n");
  const auto lightning = file("d.out",
                              "step 1 loss 0.5\n[rank: 0] Received SIGTERM: 15\nTraceback (most recent call last):\n"
                              "  File \"a.py\", line 1\nlightning.pytorch.utilities.exceptions.SIGTERMException\n");
  for (const auto& log : {asked, broken, ended, lightning}) {
    const Diagnosis diagnosis = diagnose_logs({log});
    EXPECT_EQ(diagnosis.outcome, Outcome::kStopped) << log;
    EXPECT_EQ(find(diagnosis, "run-failed"), nullptr) << log;
  }
}

TEST_F(LogSignals, WhatIsKnownOfAnEndWithoutAnError) {
  const auto node =
      file("a.out",
           "step 1 loss 0.5\nslurmstepd: error: *** JOB 4711 ON node1 CANCELLED AT 2024-03-05T10:03:20 DUE TO "
           "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n");
  EXPECT_THAT(answer(diagnose_logs({node})),
              HasSubstr("The run failed: the scheduler said: slurmstepd: error: *** JOB"));
  const auto rank = file("b.out",
                         "step 1 loss 0.5\nfailed (exitcode: 1) local_rank: 1 (pid: 102) of binary: /opt/bin/python\n"
                         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                         "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 1)\n"
                         "  exitcode  : 1 (pid: 102)\n");
  const Diagnosis of_rank = diagnose_logs({rank});
  EXPECT_THAT(evidence(of_rank, "run-failed"), HasSubstr("rank 3 failed first"));
  EXPECT_THAT(evidence(of_rank, "run-failed"), HasSubstr("exit code 1"));
  EXPECT_THAT(answer(of_rank), HasSubstr("ChildFailedError."));
}

TEST_F(LogSignals, TablesThatAreFarApartAreNoMeasurement) {
  const auto tables = [&](const char* name, int minutes) {
    std::string bytes;
    for (int i = 0; i < 6; ++i) {
      bytes += fmt::format(
          "Sun Aug 17 {:02}:{:02}:00 2025\n|   0  NVIDIA H800         On  | 00000000:18:00.0 Off |                  0 "
          "|\n"
          "| N/A   30C    P0              72W / 700W |      4MiB / 81559MiB |      1%      Default |\n",
          i * minutes / 60, i * minutes % 60);
    }
    return diagnose_logs({file(name, bytes + "step 1 loss 0.5\n")}).device.busy;
  };
  EXPECT_TRUE(tables("often.out", 1));
  EXPECT_FALSE(tables("at_starts.out", 120));
}

TEST_F(LogSignals, BarsThatTellNoRateOfSteps) {
  const auto bar = [](const char* label, int total, int seconds) {
    std::string text;
    for (const int part : {1, 2, 3, 4}) {
      text += fmt::format("{}{:3}%|##| {}/{} [00:{:02}<00:00, 1.0it/s]\r", label, part * 25, total * part / 4, total,
                          seconds * part / 4);
    }
    return text + "\n";
  };
  const auto rate = [&](const char* name, const std::string& text) {
    return diagnose_logs({file(name, text)}).steps_per_s;
  };
  const std::string loop = bar("", 100, 50);
  EXPECT_TRUE(rate("one.out", loop + loop));
  EXPECT_FALSE(rate("two.out", loop + bar("", 1500, 30) + loop + bar("", 1500, 30)));  // either may be the validation
  EXPECT_FALSE(rate("epochs.out", bar("Epoch: ", 4, 40)));
}

TEST_F(LogSignals, AFailureThatWasSurvivedDoesNotHideTheEnd) {
  const auto log = file("a.out",
                        "CondaError: Run 'conda init' before 'conda deactivate'\nstep 1 loss 0.5\n"
                        "step 2 loss 0.4\nTraining done in 49.87 seconds.\n");
  const Diagnosis diagnosis = diagnose_logs({log});
  EXPECT_EQ(diagnosis.outcome, Outcome::kCompleted);
  EXPECT_EQ(find(diagnosis, "run-failed")->severity, Severity::kInfo);
}

TEST_F(LogSignals, TimesOfTheStartAreNotThoseOfTheTraining) {
  std::string bytes = "2025-01-01 10:00:00 start\n2025-01-01 10:00:15 model built\n";
  for (int step = 1; step <= 60; ++step) {
    bytes += fmt::format("step:{}/100 train_loss:3.1 train_time:{}ms step_avg:4000.00ms\n", step, step * 4000);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.out", bytes)});
  EXPECT_EQ(find(diagnosis, "startup-dominates"), nullptr);
  EXPECT_DOUBLE_EQ(diagnosis.time.startup, 0);
  EXPECT_NEAR(diagnosis.time.train, 240, 8);
}

TEST_F(LogSignals, AFailureBehindAClaim) {
  const auto log = file("a.out",
                        "epoch 1 loss 0.5\nTraceback (most recent call last):\n  File \"train.py\", line 7, in main\n"
                        "TypeError: not serializable\nTraining finished successfully\n");
  const Diagnosis diagnosis = diagnose_logs({log});
  EXPECT_EQ(diagnosis.outcome, Outcome::kFailed);
  EXPECT_EQ(diagnosis.verdict, Verdict::kFailed);
  ASSERT_NE(find(diagnosis, "run-failed"), nullptr);
  EXPECT_EQ(find(diagnosis, "run-failed")->where, "train.py:7");
  EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("a later line claims success"));
  EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("a.out:2"));
}

TEST_F(LogSignals, TheOrderAndTheNamesOfFilesDoNotMatter) {
  const std::string output =
      "2025-08-04 10:00:00 epoch 1/10 loss 0.5\n2025-08-04 10:10:00 running validation\n"
      "2025-08-04 10:40:00 validation loss 0.5 accuracy 0.7\n2025-08-04 10:50:00 epoch 2/10 loss 0.4\n";
  const std::string gpu =
      "timestamp, utilization.gpu [%], power.draw [W]\n2025/08/04 10:00:00.000, 3 %, 60.00 W\n"
      "2025/08/04 10:50:00.000, 5 %, 61.00 W\n";
  const std::string scheduler =
      "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-08-04T10:55:00 DUE TO TIME LIMIT ***\n";
  std::vector<fs::path> files = {file("a.x", output), file("b.x", gpu), file("c.x", scheduler)};
  const std::string first = to_json(diagnose_logs(files)).dump();
  while (std::next_permutation(files.begin(), files.end())) {
    EXPECT_EQ(to_json(diagnose_logs(files)).dump(), first);
  }
  std::string renamed = to_json(diagnose_logs({file("7.x", scheduler), file("8.x", output), file("9.x", gpu)})).dump();
  for (const auto& [now, before] : {std::pair("7.x", "c.x"), std::pair("8.x", "a.x"), std::pair("9.x", "b.x")}) {
    for (std::size_t at = renamed.find(now); at != std::string::npos; at = renamed.find(now)) {
      renamed.replace(at, 3, before);
    }
  }
  EXPECT_EQ(renamed, first);
  EXPECT_THAT(first, HasSubstr("run-timed-out"));
}

TEST_F(LogSignals, EvidenceInChinese) {
  const auto log = file("a.out",
                        "epoch 1 loss 0.5\nTraceback (most recent call last):\n  File \"train.py\", line 7, in main\n"
                        "TypeError: not serializable\nTraining finished successfully\n");
  const auto gpu =
      file("gpu.csv", "timestamp, utilization.gpu [%]\n2025/01/01 10:00:00.000, 0 %\n2025/01/01 10:00:10.000, 50 %\n");
  const Diagnosis diagnosis = diagnose_logs({log, gpu}, {}, Language::kChinese);
  EXPECT_THAT(evidence(diagnosis, "run-failed"),
              HasSubstr("之后却有一行声称成功：“Training finished successfully”（a.out:5）"));
  EXPECT_THAT(diagnosis.device.how, HasSubstr("：平均利用率 25.00 %，最高 50 %"));
}

TEST_F(LogSignals, ATracebackAfterWhichTrainingGoesOnIsAHint) {
  const auto log = file("a.out",
                        "epoch 1 loss 0.5\nTraceback (most recent call last):\n  File \"train.py\", line 7, in main\n"
                        "TypeError: x\n2024-03-05 10:00:01 epoch 2 loss 0.4\n2024-03-05 10:00:02 epoch 3 loss 0.3\n");
  const Diagnosis diagnosis = diagnose_logs({log});
  ASSERT_NE(find(diagnosis, "run-failed"), nullptr);
  EXPECT_EQ(find(diagnosis, "run-failed")->severity, Severity::kInfo);
}

/// A run of 400 steps, one per second from 10:00:00 on, with `words` after the first `steps` of them.
std::string run_with(int steps, const std::string& words, bool to_the_end) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += i == steps ? words : "";
    if (i >= steps && !to_the_end) {
      return text;
    }
    text += fmt::format("2024-03-05 10:{:02}:{:02} step {}/400 loss 0.5\n", i / 60, i % 60, i);
  }
  return text + (steps == 400 ? words : "") + "training finished\n";
}

TEST_F(LogSignals, WordsOfFailuresAloneAreNoFailure) {
  for (const char* words : {"Set max_split_size_mb to avoid CUDA out of memory errors.\n", "out of memory retries: 0\n",
                            "segmentation fault count 0\n", "12 retries, 0 failed\n", "oom_kill 0\n",
                            "killed 0 stale processes\n", "If you run out of memory, set --batch-size 8\n"}) {
    for (const int steps : {200, 400}) {
      const Diagnosis diagnosis = diagnose_logs({file("a.log", run_with(steps, words, true))});
      EXPECT_EQ(diagnosis.outcome, Outcome::kCompleted) << words;
      EXPECT_EQ(find(diagnosis, "run-failed"), nullptr) << words;
      EXPECT_EQ(find(diagnosis, "out-of-memory"), nullptr) << words;
    }
  }
}

TEST_F(LogSignals, LacksOfMemoryInTheWordsOfWhoeverSpeaks) {
  struct Case {
    const char* words;
    const char* evidence;
  };
  for (const Case& one : {
           Case{"slurmstepd: error: StepId=5211.batch exceeded memory limit (1048576 > 524288), being killed\n"
                "slurmstepd: error: *** JOB 5211 ON node1 CANCELLED AT 2024-03-05T10:20:00 ***\n",
                "the scheduler ended the job for using too much memory"},
           Case{"slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.\n", "the scheduler ended the job"},
           Case{"[77.1] Memory cgroup out of memory: Killed process 15617 (python3) total-vm:1kB\n",
                "the kernel killed a process"},
           Case{"RuntimeError: CUDA error: out of memory\n", "it ran out of memory"},
           Case{"RuntimeError: CUDNN_STATUS_ALLOC_FAILED\n", "it ran out of memory"},
           Case{"OSError: [Errno 12] Cannot allocate memory\n", "the host ran out of memory"},
           Case{"RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error. It is possible that\n",
                "shared memory (/dev/shm) ran out"},
       }) {
    const Diagnosis diagnosis = diagnose_logs({file("a.log", run_with(200, one.words, false))});
    EXPECT_EQ(diagnosis.verdict, Verdict::kFailed) << one.words;
    EXPECT_THAT(evidence(diagnosis, "out-of-memory"), HasSubstr(one.evidence)) << one.words;
    EXPECT_NE(find(diagnosis, "run-failed"), nullptr) << one.words;
  }
}

TEST_F(LogSignals, WhatTheProgramTriedAgainIsAWarning) {
  const std::string words = "| WARNING: ran out of memory on GPU #2, skipping batch\n";
  for (const int steps : {200, 400}) {
    const Diagnosis diagnosis = diagnose_logs({file("a.log", run_with(steps, words, true))});
    ASSERT_NE(find(diagnosis, "out-of-memory"), nullptr);
    EXPECT_EQ(find(diagnosis, "out-of-memory")->severity, Severity::kWarning);
    EXPECT_THAT(answer(diagnosis), HasSubstr("wait for. Memory ran out: for device memory"));
    EXPECT_NE(diagnosis.verdict, Verdict::kFailed);
  }
}

TEST_F(LogSignals, AnAttemptThatTheSchedulerEndedAndAnotherOneFinished) {
  const std::string begin = "slurmstepd: error: *** JOB 5211 ON node1 CANCELLED AT 2024-03-05T10:03:20 DUE TO ";
  struct Case {
    const char* why;
    const char* rule;
  };
  for (const Case& one : {Case{"TIME LIMIT", "run-timed-out"}, Case{"PREEMPTION", "run-failed"},
                          Case{"NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "run-failed"}}) {
    const Diagnosis diagnosis = diagnose_logs({file("a.log", run_with(200, begin + one.why + " ***\n", true))});
    EXPECT_EQ(diagnosis.outcome, Outcome::kCompleted) << one.why;
    ASSERT_NE(find(diagnosis, one.rule), nullptr) << one.why;
    EXPECT_EQ(find(diagnosis, one.rule)->severity, Severity::kInfo) << one.why;
    EXPECT_THAT(evidence(diagnosis, one.rule), HasSubstr("a later attempt went on")) << one.why;
    EXPECT_NE(diagnosis.verdict, Verdict::kFailed) << one.why;
  }
}

TEST_F(LogSignals, TheTimeBetweenTwoAttemptsIsNotTraining) {
  std::string text = run_with(
      200, "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2024-03-05T10:03:20 DUE TO PREEMPTION ***\n", false);
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("2024-03-05 11:{:02}:{:02} step {}/300 loss 0.5\n", i / 60, i % 60, 200 + i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text + "training finished\n")});
  EXPECT_DOUBLE_EQ(diagnosis.time.train, 200 + 99);
  EXPECT_DOUBLE_EQ(diagnosis.time.other, 3400);
}

TEST_F(LogSignals, OfRanksWithALogEachTheFirstThatFailed) {
  const auto rank = [&](const char* name, const char* time, const char* message) {
    return file(name, run_with(200,
                               fmt::format("2024-03-05 {} ERROR out\nTraceback (most recent call last):\n"
                                           "  File \"/home/me/{}.py\", line 50, in <module>\n{}\n",
                                           time, name, message),
                               false));
  };
  const auto peer =
      rank("q0", "10:04:20", "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.");
  const auto first = rank("q1", "10:03:20", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.");
  const auto later = rank("q2", "10:05:20", "ValueError: no batch");
  for (const auto& files : {std::vector{peer, first, later}, std::vector{later, first, peer}}) {
    const Diagnosis diagnosis = diagnose_logs(files);
    EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("CUDA out of memory"));
    EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("q1:202, logged at 2024-03-05 10:03:20"));
    EXPECT_EQ(find(diagnosis, "run-failed")->where, "/home/me/q1.py:50");
    EXPECT_NE(find(diagnosis, "out-of-memory"), nullptr);
  }
}

TEST_F(LogSignals, SignalsAndTimeoutsAreSaidInWords) {
  const std::string elastic =
      "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: 3 "
      "(pid: 812917) of binary: /opt/bin/python\n";
  const auto said = [&](const std::string& words) {
    return evidence(diagnose_logs({file("a.log", run_with(200, words, false))}), "run-failed");
  };
  EXPECT_THAT(said(fmt::format(fmt::runtime(elastic), -9)), HasSubstr("when memory runs out"));
  EXPECT_THAT(said(fmt::format(fmt::runtime(elastic), -11)), HasSubstr("signal 11"));
  EXPECT_THAT(said(fmt::format(fmt::runtime(elastic), -7)), HasSubstr("/dev/shm"));
  EXPECT_THAT(said("[0]<stderr>:Killed\n[1]<stderr>:Aborted (core dumped)\n"),
              HasSubstr("rank 0 failed first, ended by signal 9"));
  EXPECT_THAT(
      said("[rank1]:[E305 10:33:21.512 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
           "timeout: WorkNCCL(SeqNum=1, Timeout(ms)=1800000) ran for 1800032 milliseconds before timing out.\n"),
      HasSubstr("timed out after 30 min"));
}

TEST_F(LogSignals, ACompletedRun) {
  const auto log = file("a.out", "epoch 1 loss 0.5\nepoch 2 loss 0.4\nTraining completed successfully\n");
  EXPECT_EQ(diagnose_logs({log}).outcome, Outcome::kCompleted);
}

TEST_F(LogSignals, CountsThatCameToTheirEnds) {
  std::string text;
  for (int epoch = 1; epoch <= 10; ++epoch) {
    text += fmt::format("epoch {}/10 loss 0.5\n", epoch);
  }
  EXPECT_EQ(diagnose_logs({file("a.out", text)}).outcome, Outcome::kCompleted);
  const std::string failure = "Traceback (most recent call last):\n  File \"a.py\", line 1\nOSError: disk full\n";
  EXPECT_EQ(diagnose_logs({file("b.out", text + failure)}).outcome, Outcome::kFailed);
  EXPECT_EQ(diagnose_logs({file("c.out", text + "Experiment 2 failed!\n")}).outcome, Outcome::kUnknown);
  EXPECT_EQ(diagnose_logs({file("d.out", text.substr(0, text.size() / 2))}).outcome, Outcome::kUnknown);
}

TEST_F(LogSignals, ResultsMayFollowAClaim) {
  const std::string run = "epoch 1 loss 0.5\nepoch 2 loss 0.4\n";
  const auto outcome = [&](const std::string& rest) { return diagnose_logs({file("a.out", run + rest)}).outcome; };
  EXPECT_EQ(outcome("Training complete in 26m 32s\ntest loss 0.45\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("Early stopping triggered.\ntest loss 0.45 accuracy 0.8\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("Training complete\nepoch 3 loss 0.3\n"), Outcome::kUnknown);  // of a part
  EXPECT_EQ(outcome("Training complete\nStarting training\n"), Outcome::kUnknown);
  EXPECT_EQ(outcome("2024-07-15 16:48:24 - LOGS    - Training took 01:45:11.12\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("[EARLY STOP] No improvement, stopping training.\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("[EARLY STOP] counter 3/10\n"), Outcome::kUnknown);
  EXPECT_EQ(outcome("Keyboard interruption. Exiting from early training\n"), Outcome::kStopped);
  EXPECT_EQ(outcome("stop it by a keyboard interrupt\n"), Outcome::kUnknown);
  for (const char* words : {"Keyboard interrupt handler was removed\nbye\n",
                            "Interrupted by the user? Run again with --resume\n", "Interrupted by default\n"}) {
    EXPECT_EQ(outcome(words), Outcome::kUnknown) << words;
  }
  EXPECT_EQ(outcome("Interrupted by user, saving\n"), Outcome::kStopped);
  EXPECT_EQ(outcome("Training complete\nTo start training on other data run train.py\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("Training complete\nFold 2: start training\n"), Outcome::kUnknown);
  EXPECT_EQ(outcome("training Res18 finished\ntest loss 0.45\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("Finished training epoch 2\n"), Outcome::kUnknown);
  EXPECT_EQ(outcome("Treinamento concluído com sucesso\n"), Outcome::kCompleted);
}

TEST_F(LogSignals, WordsOfPartsAreNoEnd) {
  const auto outcome = [&](const std::string& text) { return diagnose_logs({file("a.out", text)}).outcome; };
  for (const char* words :
       {"hint: use --resume to extend training", "Weekend training", "Suspend training", "Training took 50 s",
        "train finished, validating", "Done training", "Done training model 3", "Completed training on client 3"}) {
    const std::string line = words + std::string("\n");
    EXPECT_EQ(outcome("epoch 4/100 loss 0.5\nepoch 5/100 loss 0.4\n" + line), Outcome::kUnknown) << words;
    const std::string each = "epoch 4 loss 0.5\n" + line + "epoch 5 loss 0.4\n" + line;
    EXPECT_EQ(outcome(each), Outcome::kUnknown) << words;
  }
  for (const char* words : {"End training", "Train finished in 3 h", "Training took 50 s", "Done training",
                            "Done training model", "training task_net done"}) {
    EXPECT_EQ(outcome("epoch 4 loss 0.5\nepoch 5 loss 0.4\n" + std::string(words) + "\n"), Outcome::kCompleted)
        << words;
  }
}

TEST_F(LogSignals, AnEstimatorEvaluatesAfterItsFinalStep) {
  const std::string steps =
      "INFO:tensorflow:loss = 0.7, step = 400 (9.1 sec)\nINFO:tensorflow:loss = 0.5, step = 500\n";
  const std::string final_step = "INFO:tensorflow:Loss for final step: 0.45.\n";
  const std::string results = "INFO:tensorflow:  global_step = 540\nINFO:tensorflow:  loss = 0.72\n";
  const auto outcome = [&](const std::string& text) { return diagnose_logs({file("a.out", text)}).outcome; };
  EXPECT_EQ(outcome(steps + final_step + results), Outcome::kCompleted);
  EXPECT_EQ(outcome(steps + final_step + results + steps), Outcome::kUnknown);
  EXPECT_EQ(outcome(steps + final_step + results + steps + final_step), Outcome::kUnknown);  // in turn
}

TEST_F(LogSignals, BannersOfBatchScripts) {
  const auto outcome = [&](const std::string& end) {
    return diagnose_logs({file("a.out", "epoch 1 loss 0.5\n" + end)}).outcome;
  };
  for (const char* end : {"[FAIL] exit 1\n", "[FAIL] exit 1  (both attempts)\n", "[FAIL] exit=1\n", "Exit status: 2\n",
                          "Training failed with exit code 1\n"}) {
    EXPECT_EQ(outcome(end), Outcome::kFailed) << end;
  }
  EXPECT_EQ(outcome("# Ended (code 1) at Wed Feb  5 23:22:03 KST 2025, elapsed time 29 seconds\n"), Outcome::kFailed);
  EXPECT_EQ(outcome("# Ended (code 0) at Wed Feb  5 23:22:03 KST 2025, elapsed time 29 seconds\n"),
            Outcome::kCompleted);
  EXPECT_EQ(outcome("Exit code: 0\n"), Outcome::kCompleted);
  EXPECT_EQ(outcome("Exit code: 0\nepoch 2 loss 0.4\n"), Outcome::kUnknown);
}

TEST_F(LogSignals, ThreadsThatFailAtTheExit) {
  const std::string thread =
      "Exception in thread Thread-1:\nTraceback (most recent call last):\n  File \"a.py\", line 1\nOSError: closed\n";
  const std::string threads =
      "Exception in thread Thread-1:\nException in thread Thread-3:\n\nEnd training....\n"
      "Traceback (most recent call last):\nTraceback (most recent call last):\n  File \"a.py\", line 1\n"
      "  File \"a.py\", line 1\nOSError: closed\nOSError: closed\n";
  const auto outcome = [&](const std::string& text) { return diagnose_logs({file("a.out", text)}).outcome; };
  EXPECT_EQ(outcome("epoch 1/2 loss 0.5\nepoch 2/2 loss 0.4\n" + thread), Outcome::kCompleted);
  EXPECT_EQ(outcome("epoch 1 loss 0.5\n" + threads), Outcome::kCompleted);
  EXPECT_EQ(outcome("epoch 1/2 loss 0.5\n" + thread), Outcome::kFailed);
  const std::string java = "Exception in thread \"main\" java.lang.NoClassDefFoundError\n";
  const std::string full = "Traceback (most recent call last):\n  File \"a.py\", line 1\nOSError: No space left\n";
  EXPECT_EQ(outcome(java + "epoch 1/2 loss 0.5\nepoch 2/2 loss 0.4\n" + full), Outcome::kFailed);
  EXPECT_EQ(outcome(java + "epoch 1 loss 0.5\n\nTraining complete\n" + full), Outcome::kFailed);
}

TEST_F(LogSignals, TimesOfTheStartAloneGiveNoPhases) {
  const auto told = diagnose_logs({file("a.out",
                                        "W1205 12:44:41.166 276 a.cc:447] device: 0\nW1205 12:44:41.171 276 a.cc:465] "
                                        "cuDNN\nepoch 1 loss 0.5\nepoch 2 loss 0.4\n")});
  EXPECT_EQ(find(told, "startup-dominates"), nullptr);
}

TEST_F(LogSignals, WhatSeffPrintsBehindAJob) {
  const auto outcome = [&](const std::string& state) {
    return diagnose_logs({file("a.out", "epoch 1 loss 0.5\nJob ID: 7\nState: " + state + "\nNodes: 1\n")});
  };
  EXPECT_EQ(outcome("COMPLETED (exit code 0)").outcome, Outcome::kCompleted);
  EXPECT_EQ(outcome("TIMEOUT (exit code 0)").outcome, Outcome::kTimedOut);
  EXPECT_EQ(outcome("CANCELLED (exit code 0)").outcome, Outcome::kStopped);
  EXPECT_EQ(outcome("FAILED (exit code 1)").outcome, Outcome::kFailed);
  EXPECT_NE(find(outcome("OUT_OF_MEMORY (exit code 0)"), "out-of-memory"), nullptr);
  EXPECT_DOUBLE_EQ(outcome("COMPLETED (exit code 0)\nJob Wall-clock time: 1-00:01:00").time.other, 86'460);
  EXPECT_DOUBLE_EQ(outcome("COMPLETED (exit code 0)\nJob Wall-clock time: 02:00:00 (limit 1-00:00:00)").time.other,
                   7'200);
  EXPECT_DOUBLE_EQ(outcome("COMPLETED (exit code 0)\nRsrc Used: cput=08:00:00,walltime=01:03:33").time.other, 3'813);
  EXPECT_DOUBLE_EQ(outcome("COMPLETED (exit code 0)\nResource_List.walltime=24:00:00").time.other, 0);
}

TEST_F(LogSignals, TablesOfOtherToolsAreRefusedWithTheWayOut) {
  const auto said = [&](const std::string& bytes) -> std::string {
    try {
      diagnose_logs({file("a.txt", bytes)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(said("JobID           JobName      State ExitCode \n------------ ---------- ---------- -------- \n"
                   "3764934        mem_test OUT_OF_ME+    0:125 \n"),
              HasSubstr("unidle slurm analyze"));
  EXPECT_THAT(
      said("===== ROCm System Management Interface =====\nGPU  Temp   AvgPwr  VRAM%  GPU%\n0  24.0c  3.0W  1%  0%\n"),
      HasSubstr("--csv"));
}

TEST_F(LogSignals, LossThatStaysNan) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += fmt::format("step {} loss: {}\n", i, i < 4 ? "0.5" : "nan");
  }
  const Diagnosis diagnosis = diagnose_logs({file("a.log", text)});
  EXPECT_EQ(diagnosis.verdict, Verdict::kFailed);
  EXPECT_THAT(evidence(diagnosis, "run-failed"), HasSubstr("a.log:5"));
}

TEST_F(LogSignals, HowFarATimedOutRunCame) {
  std::string text = "2025-01-01 10:00:00 job starts\n";
  for (int step = 1; step <= 51; ++step) {
    text += fmt::format("2025-01-01 10:{:02}:00 Step {}/200\n", step, step);
  }
  text += "slurmstepd: error: *** JOB 5 ON n CANCELLED AT 2025-01-01T11:00:00 DUE TO TIME LIMIT ***\n";
  const Diagnosis diagnosis = diagnose_logs({file("a.out", text)});
  EXPECT_EQ(diagnosis.outcome, Outcome::kTimedOut);
  EXPECT_THAT(evidence(diagnosis, "run-timed-out"), HasSubstr("step 51 of 200, 1 min 0 s each"));
  EXPECT_THAT(evidence(diagnosis, "run-timed-out"), HasSubstr("needs 3 h 21 min"));
  const PhaseTimes& time = diagnosis.time;
  EXPECT_NEAR(time.startup + time.train + time.validate + time.checkpoint + time.other, 3600, 1e-6);
}

TEST_F(LogSignals, AnUnusedGpuBesideARunOnTheCpu) {
  std::string gpu = "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n";
  std::string text;
  for (int i = 0; i < 40; ++i) {
    gpu += fmt::format("2025/01/01 10:00:{:02}.000, 0 %, 4 MiB, 81920 MiB\n", i);
    text += fmt::format("2025-01-01 10:00:{:02} step {} loss 0.5\n", i, i);
  }
  const Diagnosis diagnosis = diagnose_logs({file("gpu.csv", gpu), file("a.log", text)});
  EXPECT_EQ(diagnosis.verdict, Verdict::kDeviceUnused);
  EXPECT_THAT(evidence(diagnosis, "device-unused"), HasSubstr("40 samples"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
