#include "unidle/logs/text_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "unidle/logs/detail/keywords.h"
#include "unidle/logs/detail/progress.h"

namespace unidle::logs {
namespace {

using ::testing::HasSubstr;

TextLog log_of(std::string_view bytes) {
  Source source("run.log", bytes);
  return read_text_log(source);
}

const Counter& counter(const TextLog& log, std::string_view kind) {
  static const Counter kNone;
  const Counter* found = log.counter(kind);
  EXPECT_NE(found, nullptr) << kind;
  return found == nullptr ? kNone : *found;
}

TEST(Progress, CommonShapes) {
  struct Shape {
    const char* line;
    const char* kind;
    double value;
    double total;  // 0: none
  };
  for (const Shape& shape : {
           Shape{"Epoch 3/10 - loss: 0.5", "epoch", 3, 10},
           Shape{"epoch: 3, loss: 0.5", "epoch", 3, 0},
           Shape{"{\"epoch\": 3, \"step\": 120, \"loss\": 0.5}", "step", 120, 0},
           Shape{"{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.25}", "epoch", 0.25, 0},
           Shape{"step=1,200 loss=0.5", "step", 1200, 0},
           Shape{"Iteration 40 of 200 loss 1.5", "iteration", 40, 200},
           Shape{"iter: [ 40/200]", "iteration", 40, 200},
           Shape{"Iters: 10/20000 || Lr: 0.02 || Loss: 3.2", "iteration", 10, 20000},
           Shape{"(epoch: 2, iters: 120, time: 1.274)", "iteration", 120, 0},
           Shape{"Epoch: [3][120/5000]  Time 0.5", "step", 120, 5000},
           Shape{"Train Epoch: 3 [12800/60000 (21%)]\tLoss: 0.3", "sample", 12800, 60000},
           Shape{"--- 迭代 500: 运行验证 ---", "iteration", 500, 0},
           Shape{"第 3/10 轮 损失: 0.5", "epoch", 3, 10},
           Shape{"轮次: 3, 损失: 0.5", "epoch", 3, 0},
           Shape{"[Global仿真] ===== Step 43/200 =====", "step", 43, 200},
           Shape{"\x1b[32mBatch\x1b[0m 7/9 loss 0.1", "batch", 7, 9},
       }) {
    const TextLog log = log_of(shape.line);
    EXPECT_EQ(counter(log, shape.kind).last, shape.value) << shape.line;
    EXPECT_EQ(counter(log, shape.kind).total.value_or(0), shape.total) << shape.line;
  }
}

TEST(Progress, RunsOfDifferentSizesHaveNoSizeInCommon) {
  const std::string run = "train samples: 100\nepoch 1 loss 0.5\n";
  EXPECT_EQ(log_of(run + run).rows_per_epoch, 100);
  EXPECT_FALSE(log_of(run + "train samples: 5000\nepoch 1 loss 0.5\n" + run).rows_per_epoch);
}

TEST(Progress, WhatIsNoCount) {
  for (const char* line :
       {"epochs: 150", "iters: 3000", "steps=500 loss: mse", "step_play_time_T: 458635.0", "batch_size: 1024",
        "num_epochs=10", "[GPU速度测试] 完成100次迭代，用时: 0.23秒", "stepping 3 aside", "Epoch 50% done"}) {
    EXPECT_TRUE(log_of(line).counters.empty()) << line;
  }
}

TEST(Progress, CountersFromZeroAndFromOneAreOneLoop) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += fmt::format("[Rank 0] step={}, skipped=0\n[Step {}/100] Loss: 5.1\n", i + 1, i);
  }
  EXPECT_EQ(counter(log_of(text), "step").last, 10);
  EXPECT_LE(counter(log_of(text), "step").advanced, 13);  // the first steps go down by one too
}

TEST(Progress, ProcessesThatAreALittleApartAreOneLoop) {
  std::string text;
  for (int i = 100; i < 200; ++i) {
    text += fmt::format("step {} loss 0.5\nstep {} loss 0.5\n", i * 10, (i - 2) * 10);
  }
  EXPECT_EQ(counter(log_of(text), "step").advanced, 990);
  EXPECT_EQ(counter(log_of(text), "step").restarts, 0);
}

TEST(Progress, BarsHaveAClockOfTheirOwn) {
  const TextLog log = log_of(
      "Epoch 1:   0%|          | 0/100 [00:00<?, ?it/s]\r"
      "Epoch 1:  50%|#####     | 50/100 [00:05<00:05, 10.0it/s, loss=0.5]\r"
      "Epoch 1: 100%|##########| 100/100 [00:10<00:00, 10.0it/s, loss=0.4]\n"
      "Validation: 100%|##########| 20/20 [00:30<00:00, 1.5s/it]\n"
      "Epoch 2: 100%|##########| 100/100 [00:12<00:00, 9.0it/s, loss=0.3]\n"
      "Validation: 10%|#         | 2/20 [00:03<00:27, 1.5s/it]\r"
      "Validation: 100%|##########| 20/20 [01:02:00<00:00, 1.5s/it]\n");
  ASSERT_EQ(log.bars.size(), 2U);
  const std::size_t train = log.bars[0].validation ? 1 : 0;
  EXPECT_EQ(log.bars[train].runs, 2);
  EXPECT_DOUBLE_EQ(log.bars[train].seconds, 22);
  EXPECT_DOUBLE_EQ(log.bars[train].steps, 200);
  EXPECT_TRUE(log.bars[1 - train].validation);
  EXPECT_DOUBLE_EQ(log.bars[1 - train].seconds, 30 + 3720);
}

TEST(Progress, BarsOfPreparationAreNone) {
  const TextLog log = log_of(
      "Map (num_proc=4): 100%|##########| 404/404 [00:09<00:00, 64.97 examples/s]\n"
      "Loading checkpoint shards: 100%|##########| 2/2 [00:15<00:00,  7.70s/it]\n"
      "Preloading the dataset:   1%|1         | 278/21944 [00:04<04:52, 73.96it/s]\n"
      "  2%|2         | 10.7M/548M [00:00<00:05, 112MB/s]\n");
  EXPECT_TRUE(log.bars.empty());
  EXPECT_EQ(log.progress_lines, 0);
  EXPECT_FALSE(log.stated.steps_per_s);
}

TEST(Progress, BarsWithoutALabelAreOneLoopWhereTheyAreOfOneLength) {
  const TextLog log = log_of(
      "100%|##########| 400/400 [00:05<00:00, 80.0it/s]\n"
      " 50%|#####     | 250/500 [10:00<10:00,  2.4s/it]\r"
      "100%|##########| 500/500 [20:00<00:00,  2.4s/it]\n"
      " 20%|##        | 100/500 [04:00<16:00,  2.4s/it]\n");
  ASSERT_EQ(log.bars.size(), 2U);
  EXPECT_DOUBLE_EQ(log.bars[1].seconds, 1440);
  EXPECT_DOUBLE_EQ(log.bars[1].steps, 600);
}

TEST(Progress, AMinusBehindAClockSeparatesNoDays) {
  const TextLog log = log_of(R"({"timestamp":"0:00:00","lr":1e-4,"step":1,"loss":0.6})"
                             "\n"
                             R"({"timestamp":"0:07:00","lr":1e-4,"step":2,"loss":0.6})"
                             "\n");
  EXPECT_DOUBLE_EQ(log.phases.train_s, 420);
}

TEST(Progress, TimeSinceTheStartIsAClock) {
  const TextLog log = log_of(
      R"({"current_steps": 10, "total_steps": 500, "loss": 0.6, "epoch": 0.1, "elapsed_time": "0:00:40"})"
      "\n"
      R"({"current_steps": 10, "total_steps": 500, "loss": 0.6, "epoch": 0.1, "elapsed_time": "0:00:39"})"
      "\n"
      R"({"current_steps": 110, "total_steps": 500, "loss": 0.6, "epoch": 1.1, "elapsed_time": "1 day, 0:00:00"})"
      "\n"
      R"({"current_steps": 120, "total_steps": 500, "loss": 0.6, "epoch": 1.2, "elapsed_time": "0:01:40"})"
      "\n");
  const Counter& steps = counter(log, "step");
  EXPECT_DOUBLE_EQ(steps.train_s_changed - steps.train_s_first, 86'400 - 40 + 100);
  EXPECT_DOUBLE_EQ(steps.advanced, 110);
}

TEST(Phases, ByTheTimesInTheLines) {
  const TextLog log = log_of(
      "2025-01-01 10:00:00 start\n"
      "2025-01-01 10:01:00 Epoch 1/2\n"
      "2025-01-01 10:02:00 step 100 loss 0.5\n"
      "2025-01-01 10:02:00 Running validation\n"
      "2025-01-01 10:05:00 Validation loss: 0.6, accuracy: 0.7\n"
      "2025-01-01 10:05:00 Saving checkpoint to a.pt\n"
      "2025-01-01 10:05:10 Saved checkpoint a.pt\n"
      "2025-01-01 10:06:10 step 200 loss 0.4\n");
  EXPECT_DOUBLE_EQ(log.phases.startup_s, 60);
  EXPECT_DOUBLE_EQ(log.phases.validate_s, 180);
  EXPECT_DOUBLE_EQ(log.phases.checkpoint_s, 10);
  EXPECT_DOUBLE_EQ(log.phases.train_s, 120);
  EXPECT_EQ(log.phases.validations, 1);
  EXPECT_EQ(log.phases.checkpoints, 1);
  EXPECT_DOUBLE_EQ(counter(log, "step").train_s_changed - counter(log, "step").train_s_first, 60);
}

TEST(Phases, MentionsOfValidationAreNoValidation) {
  const TextLog log = log_of(
      "2025-01-01 10:00:00 开始划分用户，验证集比例: 0.2\n"
      "2025-01-01 10:00:01 训练集: 4752050, 验证集: 4752050\n"
      "2025-01-01 10:00:02 monitor: val_loss, val_interval: 5\n"
      "2025-01-01 10:00:05 epoch 1 loss 0.5 val_loss 0.6\n"
      "2025-01-01 10:00:09 epoch 2 loss 0.4 val_loss 0.5\n");
  EXPECT_EQ(log.phases.validations, 0);
  EXPECT_EQ(log.validation_results, 2);
  EXPECT_TRUE(log.phases.training_seen);
  EXPECT_EQ(log.rows_per_epoch, 4752050);
}

TEST(Phases, StatedDurations) {
  const TextLog log = log_of(
      "step 10 loss 0.5\n{'eval_loss': 0.4, 'eval_runtime': 12.5, 'epoch': 1.0}\n"
      "validation took 0:01:30\n验证耗时: 3秒\n");
  EXPECT_EQ(log.stated_validation_s.count, 3);
  EXPECT_DOUBLE_EQ(log.stated_validation_s.sum, 12.5 + 90 + 3);
}

TEST(Losses, NanThatStaysAndInfBesideAFiniteOne) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += fmt::format("step {} loss: {}\n", i, i < 4 ? "0.5" : "nan");
  }
  const TextLog log = log_of(text);
  EXPECT_EQ(log.trailing_bad_loss_lines, 6);
  EXPECT_EQ(log.hopeless_loss->line, 5U);
  const TextLog beside = log_of("step 1 train_play_time_loss: inf, train_click_loss: 0.6\n");
  EXPECT_EQ(beside.bad_loss_lines, 1);
  EXPECT_EQ(beside.trailing_bad_loss_lines, 0);
}

TEST(Settings, AsTheLogStatesThem) {
  const TextLog log = log_of(
      "Using device: cuda:0\n"
      "[DataLoader] 创建完成 - batch_size: 1024, num_workers: 64, pin_memory: True\n"
      "计算能力: 8.0\nNum examples = 60,000\n");
  EXPECT_EQ(log.settings.at("batch.size").value, "1024");
  EXPECT_EQ(log.settings.at("loader.workers").value, "64");
  EXPECT_EQ(log.settings.at("loader.pin_memory").value, "True");
  EXPECT_EQ(log.settings.at("loader.pin_memory").line, 2U);
  EXPECT_EQ(log.device, "cuda");
  EXPECT_EQ(log.capability, "8.0");
  EXPECT_EQ(log.rows_per_epoch, 60000);
}

TEST(Tables, PlainNvidiaSmiInTheText) {
  const TextLog log = log_of(
      "Mon Aug  4 13:47:38 2025       \n"
      "|   0  NVIDIA A30                     On  |   00000000:61:00.0 Off |                    0 |\n"
      "| N/A   32C    P0             29W /  165W |       1MiB /  24576MiB |     17%      Default |\n");
  ASSERT_EQ(log.tables.gpus.size(), 1U);
  const GpuUse& use = log.tables.gpus.front();
  EXPECT_EQ(use.name, "NVIDIA A30");
  EXPECT_NEAR(use.utilisation.mean(), 0.17, 1e-12);
  EXPECT_EQ(use.power_limit_w.most, 165);
  EXPECT_EQ(use.memory_total.most, 24576 * 1048576.0);
}

TEST(TextLog, JsonLinesCarryTheirTime) {
  const TextLog log = log_of(
      "{\"ts\": 1754315257.5, \"step\": 1, \"loss\": 0.5}\n{\"ts\": 1754315267.5, \"step\": 11, \"loss\": 0.4}\n");
  EXPECT_EQ(*log.last_ns - *log.first_ns, 10'000'000'000);
  EXPECT_DOUBLE_EQ(counter(log, "step").train_s_changed, 10);
}

TEST(TextLog, SaysNothingWhenItIsNoLog) {
  EXPECT_TRUE(log_of("key: value\nother: 3\n").has_no_run_data());
  EXPECT_TRUE(log_of("").has_no_run_data());
  EXPECT_FALSE(log_of("epoch 1 loss 0.5\n").has_no_run_data());
}

TEST(Matcher, FindsEveryKeywordWhereverItStands) {
  const detail::Matcher matcher(detail::log_keywords());
  detail::Hits hits;
  for (const detail::Keyword& keyword : detail::log_keywords()) {
    for (const char* shape : {"{}", "xx {} yy", "12345 {}"}) {
      const std::string line = fmt::format(fmt::runtime(shape), keyword.text);
      matcher.find(line, hits);
      EXPECT_TRUE(hits.has(keyword.word)) << line;
    }
  }
}

TEST(TextLog, RealRunSpendsItsLoopOnValidation) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED names no folder with real logs";
  }
  Source source(std::filesystem::path(shared) / "real/recsys-slurm/classic_20250822_1647_run.log");
  const TextLog log = read_text_log(source);
  EXPECT_EQ(log.phases.validations, 238);
  EXPECT_NEAR(log.phases.validate_s / 238, 95.4, 0.1);
  EXPECT_NEAR(log.phases.validate_s / (log.phases.validate_s + log.phases.train_s), 0.87, 0.005);
}

TEST(TextLog, FiguresInALabelDoNotPartABarsRun) {
  // The losses change as the bar is drawn; a run of the bar ends when the count falls back or the epoch changes.
  std::string text;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int step = 0; step <= 10; ++step) {
      text += fmt::format("\r  {}/3   17.1G   1.{}54   {}: {}%|####| {}/10 [00:{:02}<00:00,  2.0s/it]", epoch,
                          9 - step % 3, step == 4 ? "0.9" : "1", step * 10, step, step * 2);
    }
  }
  const TextLog log = log_of(text + "\n");
  ASSERT_EQ(log.bars.size(), 1);
  EXPECT_EQ(log.bars[0].runs, 3);
  EXPECT_DOUBLE_EQ(log.bars[0].steps, 30);
  EXPECT_DOUBLE_EQ(log.bars[0].seconds, 60);
}

}  // namespace
}  // namespace unidle::logs
