// Logs with several runs, with output out of order, with tables.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "unidle/logs/text_log.h"

namespace unidle::logs {
namespace {

TextLog log_with(const std::string& bytes) {
  Source source("run.log", bytes);
  return read_text_log(source);
}

bool failed(const std::string& bytes) {
  const DecisiveFailure decisive = decisive_failure(log_with(bytes));
  return decisive.failure != nullptr && !decisive.went_on;
}

const std::string kError = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n";
const std::string kStart = "reading data\n5 workers\nmodel: 12 layers\n";

std::string epochs(int from, int to) {
  std::string text;
  for (int epoch = from; epoch < to; ++epoch) {
    text += fmt::format("epoch {} loss 0.5\n", epoch);
  }
  return text;
}

TEST(SeveralRuns, AnotherTotalBeginsANewRun) {
  const auto run = [](int epochs, int total, int steps) {
    std::string text;
    for (int step = 0; step < epochs * steps; ++step) {
      text += fmt::format("Epoch: {}/{}, step: {}, loss: 0.5\n", step / steps, total, step + 1);
    }
    return text;
  };
  EXPECT_TRUE(log_with(run(30, 50, 4) + run(20, 20, 3)).is_whole);
  EXPECT_FALSE(log_with(run(30, 50, 4) + run(19, 20, 3)).is_whole);
}

TEST(SeveralRuns, AFailureBeforeTheFirstLinesComeAgain) {
  EXPECT_TRUE(failed(kStart + kError));
  EXPECT_TRUE(failed(kStart + kError + "5 workers\nmodel: 12 layers\n"));
  EXPECT_FALSE(failed(kStart + kError + "reading data\n7 workers\nmodel: 24 layers\n"));
  EXPECT_TRUE(failed(kStart + kError + kStart + kError));
  const std::string noise = "warning: slow\nwarning: slow\nwarning: slow\n";
  EXPECT_TRUE(failed(noise + kError + noise));
}

TEST(SeveralRuns, WhatAnotherProgramPrintsAfterAFailure) {
  const std::string usage = "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lr\n";
  std::string text = usage;
  EXPECT_TRUE(failed(text));
  while (text.size() < std::size_t{70'000}) {
    text += "/usr/lib/python3/site.py:29: RuntimeWarning: invalid value in divide\n";
  }
  EXPECT_FALSE(failed(text));
  EXPECT_TRUE(failed(text + usage));
  EXPECT_TRUE(failed(kError + text.substr(usage.size()))) << "ranks may print much after one of them failed";
  EXPECT_TRUE(failed("loading\n" + std::string(200'000, 'x') + "\n" + usage));
}

TEST(LeftOver, ATracebackThatOvertookTheRestOfStdout) {
  EXPECT_TRUE(failed(epochs(0, 5) + kError + epochs(5, 9)));
  EXPECT_TRUE(failed(kError + "epoch 0\n"));
  EXPECT_FALSE(failed(kError + epochs(0, 9)));                    // a second attempt
  EXPECT_FALSE(failed(epochs(0, 5) + kError + epochs(0, 5)));     // the same
  EXPECT_FALSE(failed(epochs(0, 5) + kError + epochs(5, 1000)));  // more than a buffer
  EXPECT_FALSE(failed(epochs(0, 5) + kError + epochs(5, 9) + "training finished\n"));
  EXPECT_FALSE(failed(epochs(0, 5) + kError + " 50%|#####     | 5/10 [00:05<00:05,  1.00it/s]\n"));
  EXPECT_FALSE(failed(epochs(0, 5) + kError + "2024-03-05 10:00:00 epoch 5 loss 0.5\n"));
  EXPECT_FALSE(failed(epochs(0, 5) + kError + "upload failed, continuing\n" + epochs(5, 9)));
  EXPECT_FALSE(failed(epochs(0, 5) + kError + epochs(5, 9) + "saved to out/\n"));
  EXPECT_FALSE(failed(epochs(0, 5) + kError + epochs(5, 9) + kError + epochs(9, 12))) << "it survives such errors";
  EXPECT_FALSE(failed(epochs(0, 5) + kError + "INFO:train:epoch 5 loss 0.5\n"));
}

TEST(MetricTables, ARowIsALineOfProgress) {
  const TextLog csv = log_with("epoch,acc,val_loss,loss\n0,0.5,0.7,0.7\n1,0.6,nan,nan\n");
  ASSERT_NE(csv.counter("epoch"), nullptr);
  EXPECT_EQ(csv.counter("epoch")->last, 1);
  EXPECT_EQ(csv.loss_lines, 2);
  EXPECT_EQ(csv.bad_loss_lines, 1);
  const TextLog tabs = log_with("Step\tTraining Loss\n10\t8.4\n20\t7.6\n30\t7.2\n");
  ASSERT_NE(tabs.counter("step"), nullptr);
  EXPECT_EQ(tabs.counter("step")->last, 30);
  const TextLog ultralytics =
      log_with("      epoch,   train/box_loss, metrics/mAP50(B)\n    1,   0.9,  0.3\n    2,   0.8,   0.4\n");
  ASSERT_NE(ultralytics.counter("epoch"), nullptr);
  EXPECT_EQ(ultralytics.counter("epoch")->last, 2);
  EXPECT_TRUE(log_with("Computing the loss, then the next step, of all\n1,2,3\n").has_no_run_data());
  EXPECT_TRUE(log_with("name,price\napple,3\n").has_no_run_data());
  EXPECT_EQ(log_with("epoch,train_acc,val_loss\n0,0.5,nan\n1,0.6,nan\n").bad_loss_lines, 0);
}

TEST(MetricTables, NamesAndValuesBetweenBars) {
  const std::string dump = "-------------------\n| loss    | 0.905 |\n| samples | 64    |\n| step    | {}     |\n";
  const TextLog log = log_with(fmt::format(fmt::runtime(dump), 0) + fmt::format(fmt::runtime(dump), 500));
  ASSERT_NE(log.counter("step"), nullptr);
  EXPECT_EQ(log.counter("step")->last, 500);
  EXPECT_EQ(log.loss_lines, 2);
}

TEST(Episodes, AreCounted) {
  std::string text;
  for (int episode = 1; episode <= 30; ++episode) {
    text += fmt::format("Episode {}/30 reward 12.5\n", episode);
  }
  EXPECT_TRUE(log_with(text).is_whole);
  EXPECT_FALSE(log_with(text.substr(0, text.size() / 2)).is_whole);
}

TEST(Episodes, AndRounds) {
  std::string text;
  for (int round = 1; round <= 5; ++round) {
    text += fmt::format("INFO :      [ROUND {}]\n", round) + epochs(1, 4);
  }
  const TextLog log = log_with(text + "*** SIGTERM received at time=1759944335 on cpu 0 ***\n");
  EXPECT_EQ(log.counter("round")->last, 5);
  ASSERT_TRUE(log.end);
  EXPECT_EQ(log.end->end, LogEnd::kCancelled);
  EXPECT_FALSE(log_with(text + "(Worker pid=7) *** SIGTERM received at time=1759944335 ***\n").end);
  EXPECT_FALSE(log_with(epochs(1, 4) + "training finished\n*** SIGTERM received at time=1 ***\n").end);
  EXPECT_FALSE(log_with(text + "*** SIGTERM received at time=1 ***\n" + kError).end);
  EXPECT_FALSE(log_with(text + "*** SIGTERM received at time=1 ***\n" + epochs(4, 6)).end);
}

TEST(Episodes, BetweenBars) {
  std::string text;
  for (int epoch = 1; epoch <= 10; ++epoch) {
    text += fmt::format("[ Train | {0:03}/010 ] loss = 0.5\n[ Valid | {0:03}/010 ] loss = 0.6\n", epoch);
  }
  EXPECT_TRUE(log_with(text).is_whole);
  EXPECT_EQ(log_with(text).counter("epoch")->last, 10);
  EXPECT_EQ(log_with("Epoch 3/10\nTrain | 391/391 | loss: 0.5\n").counter("epoch")->last, 3);
}

TEST(Losses, MayHaveANameBehindTheWord) {
  const TextLog log = log_with("[0:1025]  loss_total_vae=3.020  loss/train: nan\nloss functions: 3\n");
  EXPECT_EQ(log.loss_lines, 1);
  EXPECT_EQ(log.bad_loss_lines, 1);
  EXPECT_EQ(log_with("step 1 loss_scale: inf loss_best: inf\n").loss_lines, 0);
}

TEST(Tracebacks, MayHaveOutputInside) {
  const std::string inside = "Traceback (most recent call last):\n  File \"a.py\", line 1\n";
  const std::string rest = "  File \"b.py\", line 2\nKeyboardInterrupt\n";
  const TextLog log = log_with(epochs(0, 3) + inside + "{'loss': 0.69, 'epoch': 0.02}\n" + rest);
  ASSERT_EQ(log.failures.size(), 1U);
  EXPECT_EQ(log.failures.front().message, "KeyboardInterrupt");
  EXPECT_EQ(log_with(inside + "queue.Empty\nepoch 1 loss 0.5\n").failures.front().message, "queue.Empty");
  EXPECT_EQ(log_with(inside + "out of range 3\n").failures.front().message, "out of range 3");
  const std::string rich = "Traceback (most recent call last):\n╭── Traceback ──╮\n│ a.py:1 │\n╰───────────────╯\n";
  EXPECT_FALSE(
      failed(epochs(0, 3) + rich + "          ConnectionError: no route\n" + epochs(3, 9) + "Saved.\nDone.\n"));
  EXPECT_FALSE(
      failed("epoch 0\nERROR Traceback (most recent call last): ... ConnectionError\n" + epochs(1, 9) + "Done.\n"));
  EXPECT_EQ(log_with(inside + "epoch 1 loss 0.5\nelapsed: 12 s\n").failures.front().message, "epoch 1 loss 0.5");
  EXPECT_FALSE(failed(epochs(0, 3) + inside + epochs(3, 800)));
  EXPECT_FALSE(failed(epochs(0, 3) + rich + epochs(3, 9)));
}

TEST(SeveralRuns, OneThatWasNotStarted) {
  const std::string first = "python: can't open file 'trian.py': [Errno 2] No such file or directory\n";
  EXPECT_TRUE(failed(first + "Job ended\n"));
  const TextLog log = log_with(first +
                               "reading data\nTraceback (most recent call last):\n  File \"a.py\", line 1\n"
                               "KeyboardInterrupt\n");
  EXPECT_EQ(decisive_failure(log).failure->message, "KeyboardInterrupt");
}

TEST(Episodes, InBracketsAtTheBegin) {
  std::string text;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    text += fmt::format("[{}/5] 49100), Loss: 0.111, mAP 93.73%\n", epoch);
  }
  EXPECT_TRUE(log_with(text).is_whole);
}

TEST(Bars, OneThatIsOpenIsSeenOnTheLineOfTheCount) {
  const std::string begin = "Starting training for 1 epochs...\n";
  EXPECT_FALSE(log_with(begin + "Epoch 1:   0%|          | 0/5049 [00:00<?, ?it/s, loss=1.3]\r"
                                "Epoch 1:   2%|1         | 85/5049 [00:48<46:01,  1.80it/s, loss=0.25]\n")
                   .is_whole);
  EXPECT_TRUE(log_with(begin + "Epoch 1:   0%|          | 0/5049 [00:00<?, ?it/s, loss=1.3]\r"
                               "Epoch 1: 100%|##########| 5049/5049 [46:48<00:00,  1.80it/s, loss=0.25]\n")
                  .is_whole);
}

TEST(Bars, StdoutMayComeAfterThem) {
  const std::string bar = "100%|##########| 9/9 [05:09<00:00,  5.31s/it]\n";
  EXPECT_TRUE(log_with(bar + epochs(1, 10)).is_whole);
  EXPECT_FALSE(log_with(bar + epochs(1, 9) + "reading\nreading\nreading\n").is_whole);
}

}  // namespace
}  // namespace unidle::logs
