// What programs state about their steps, in the formats of the common ones.
#include "unidle/logs/detail/stated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace unidle::logs {
namespace {

StatedSteps stated(std::string_view bytes) {
  Source source("run.log", bytes);
  return read_text_log(source).stated;
}

std::string lines(int count, const std::function<std::string(int)>& line) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += line(i) + "\n";
  }
  return text;
}

struct Form {
  const char* program;
  std::function<std::string(int)> line;
  double step_s;
  double data_share;  // below 0: not stated
};

TEST(Stated, TimeOfAStepAndTheWaitForData) {
  const std::vector<Form> forms = {
      {"the ImageNet example",
       [](int i) {
         return fmt::format("Epoch: [0][{:>4}/300]\tTime  0.500 ( 0.500)\tData  0.400 ( 0.400)\tLoss 5.0e+00 (5.0e+00)",
                            i * 10);
       },
       0.5, 0.8},
      {"torchvision's references",
       [](int i) {
         return fmt::format(
             "Epoch: [0]  [{:>4}/300]  eta: 0:10:00  lr: 0.1  img/s: 64.0  loss: 5.0 (5.0)  "
             "time: 0.5000  data: 0.4000  max mem: 4000",
             i * 10);
       },
       0.5, 0.8},
      {"HRNet",
       [](int i) {
         return fmt::format(
             "Epoch: [0][{}/300]\tTime 0.500s (0.500s)\tSpeed 64.0 samples/s\tData 0.400s (0.400s)\t"
             "Loss 0.5 (0.5)",
             i * 10);
       },
       0.5, 0.8},
      {"timm",
       [](int i) {
         return fmt::format(
             "Train: 0 [{:>4}/300 ({:>3}%)]  Loss: 0.5 (0.5)  Time: 0.500s,  128.00/s  (0.500s,  "
             "128.00/s)  LR: 1.000e-03  Data: 0.400 (0.400)",
             i, i / 3);
       },
       0.5, 0.8},
      {"Swin",
       [](int i) {
         return fmt::format(
             "[2024-03-05 10:00:{:02} swin] (main.py 218): INFO Train: [0/300][{}/1251]\teta 0:10:00 lr "
             "0.000100\ttime 0.5000 (0.5000)\tloss 6.9 (6.9)\tgrad_norm 1.0 (1.0)\tmem 4000MB",
             i, i * 10);
       },
       0.5, -1},
      {"mmengine",
       [](int i) {
         return fmt::format(
             "03/05 10:{:02}:00 - mmengine - INFO - Epoch(train)  [1][{:>3}/300]  lr: 1.0e-03  eta: "
             "0:10:00  time: 0.5000  data_time: 0.4000  memory: 4000  loss: 0.5",
             i, i * 50);
       },
       0.5, 0.8},
      {"mmengine, by iteration",
       [](int i) {
         return fmt::format(
             "03/05 10:{:02}:00 - mmengine - INFO - Iter(train) [{:>5}/40000]  lr: 1.0e-03  eta: 0:10:00  "
             "time: 0.5000  data_time: 0.4000  loss: 0.5",
             i, i * 50);
       },
       0.5, 0.8},
      {"mmcv",
       [](int i) {
         return fmt::format(
             "2021-03-05 10:{:02}:00,123 - mmdet - INFO - Epoch [1][{}/300]\tlr: 1.0e-03, eta: 0:10:00, "
             "time: 0.500, data_time: 0.400, memory: 4000, loss: 0.5",
             i, i * 50 + 50);
       },
       0.5, 0.8},
      {"mmcv's JSON",
       [](int i) {
         return fmt::format(
             "{{\"mode\": \"train\", \"epoch\": 1, \"iter\": {}, \"lr\": 0.001, \"data_time\": 0.4, "
             "\"loss\": 0.5, \"time\": 0.5}}",
             i * 50 + 50);
       },
       0.5, 0.8},
      {"detectron2",
       [](int i) {
         return fmt::format(
             "[03/05 10:{:02}:00 d2.utils.events]:  eta: 0:10:00  iter: {}  total_loss: 0.5  time: 0.5000  "
             "last_time: 0.5  data_time: 0.4000  last_data_time: 0.4  lr: 0.001  max_mem: 4000M",
             i, i * 20 + 19);
       },
       0.5, 0.8},
      {"maskrcnn-benchmark",
       [](int i) {
         return fmt::format(
             "2019-03-05 10:{:02}:00,123 maskrcnn_benchmark.trainer INFO: eta: 0:10:00  iter: {}  loss: 0.5 "
             "(0.6)  time: 0.5000 (0.5000)  data: 0.4000 (0.4000)  lr: 0.001  max mem: 4000",
             i, i * 20 + 20);
       },
       0.5, 0.8},
      {"OpenCLIP",
       [](int i) {
         return fmt::format(
             "2023-03-05,10:{:02}:00 | INFO | Train Epoch: 0 [{:>5}/12800 (1%)] Data (t): 0.400 Batch (t): "
             "0.500, 512.0/s, 128.0/s/gpu LR: 0.000100 Loss: 0.5 (0.5)",
             i, i * 256);
       },
       0.5, 0.8},
      {"Dassl",
       [](int i) {
         return fmt::format(
             "epoch [1/50] batch [{}/300] time 0.500 (0.500) data 0.400 (0.400) loss 0.5 (0.5) lr 1e-03 eta "
             "0:10:00",
             i * 5 + 5);
       },
       0.5, 0.8},
      {"PaddleDetection",
       [](int i) {
         return fmt::format(
             "[03/05 10:{:02}:00] ppdet.engine INFO: Epoch: [0] [{:>3}/300] learning_rate: 0.001 loss: 0.5 "
             "eta: 0:10:00 batch_cost: 0.5000 data_cost: 0.4000 ips: 16.0000 images/s",
             i, i * 20);
       },
       0.5, 0.8},
      {"PaddleOCR",
       [](int i) {
         return fmt::format(
             "[2022/03/05 10:{:02}:00] ppocr INFO: epoch: [1/200], global_step: {}, lr: 0.0001, loss: 0.5, "
             "avg_reader_cost: 0.40000 s, avg_batch_cost: 0.50000 s, avg_samples: 8.0, ips: 16.0 samples/s",
             i, i * 10 + 10);
       },
       0.5, 0.8},
      {"YOLOX",
       [](int i) {
         return fmt::format(
             "2021-03-05 10:{:02}:00.123 | INFO | yolox.core.trainer:after_iter:246 - epoch: 1/300, iter: "
             "{}/300, mem: 4000Mb, iter_time: 0.500s, data_time: 0.400s, total_loss: 10.7, lr: 1e-3",
             i, i * 10 + 10);
       },
       0.5, 0.8},
      {"PySlowFast",
       [](int i) {
         return fmt::format(
             "[03/05 10:{:02}:00][INFO] logging.py: 97: json_stats: {{\"_type\": \"train_iter\", \"dt\": "
             "0.50000, \"dt_data\": 0.40000, \"dt_net\": 0.1, \"epoch\": \"1/200\", \"iter\": \"{}/3750\", "
             "\"loss\": 5.9}}",
             i, i * 10 + 10);
       },
       0.5, 0.8},
      {"LeRobot",
       [](int i) {
         return fmt::format(
             "INFO 2024-12-05 12:{:02}:00 ts/train.py:200 step:{} smpl:2K ep:3 epch:0.06 loss:0.5 grdn:1.2 "
             "lr:1e-5 updt_s:0.100 data_s:0.400",
             i, i * 200);
       },
       0.5, 0.8},
      {"Megatron",
       [](int i) {
         return fmt::format(
             " [2024-03-05 10:{:02}:00] iteration {:>8}/     300 | consumed samples: {:>12} | elapsed time "
             "per iteration (ms): 500.0 | learning rate: 1.0E-04 | global batch size:    64 | lm loss: "
             "1.0E+00 |",
             i, i + 1, 64 * (i + 1));
       },
       0.5, -1},
      {"nanoGPT", [](int i) { return fmt::format("iter {}: loss 3.0000, time 500.00ms, mfu 20.00%", i * 10); }, 0.5,
       -1},
      {"NeMo",
       [](int i) {
         return fmt::format(
             "Training epoch 0, iteration {}/999 | lr: 1e-4 | global_batch_size: 512 | global_step: {} | "
             "reduced_train_loss: 10.9 | train_step_timing in s: 0.5 | consumed_samples: {}",
             i, i, 512 * (i + 1));
       },
       0.5, -1},
  };
  for (const Form& form : forms) {
    const StatedSteps steps = stated(lines(8, form.line));
    ASSERT_TRUE(steps.step_s) << form.program;
    EXPECT_NEAR(*steps.step_s, form.step_s, 1e-9) << form.program;
    EXPECT_EQ(steps.lines, 8) << form.program;
    ASSERT_EQ(steps.data_share.has_value(), form.data_share >= 0) << form.program;
    if (steps.data_share) {
      EXPECT_NEAR(*steps.data_share, form.data_share, 1e-9) << form.program;
      EXPECT_EQ(steps.data_line->line, 1U) << form.program;
    }
  }
}

struct Rate {
  const char* line;  // {} is a count
  double samples;
  double steps;
  double tokens;
};

TEST(Stated, Rates) {
  for (const Rate& rate : {
           Rate{"Epoch[0] Batch [{}]\tSpeed: 1234.5 samples/sec\taccuracy=0.1", 1234.5, 0, 0},
           Rate{"step {} loss 0.5 lr: 0.1  img/s: 64.0", 64, 0, 0},
           Rate{"step {} loss 0.5 | 1,200 images/sec", 1200, 0, 0},
           Rate{"[2024-03-05 10:00:00] [INFO] [timer.py:260:stop] epoch=0/micro_step={0}/global_step={0}, "
                "RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=32.0, MemAllocated=4.32GB",
                32, 0, 0},
           Rate{"samples/sec: 40.5 | iteration {}/ 300 | learning rate: 1e-4 | lm loss: 1.0", 40.5, 0, 0},
           Rate{"{{'loss': 0.5, 'step': {}, 'train_samples_per_second': 81.0, 'train_steps_per_second': 2.5}}", 81, 2.5,
                0},
           Rate{"Iteration {} (3.5 iter/s, 28.5s/100 iters), loss = 5", 0, 3.5, 0},
           Rate{"INFO:tensorflow:global_step/sec: 3.5 step {} loss 0.1", 0, 3.5, 0},
           Rate{"epoch 001: {} / 1000 loss=5.0, ppl=30, wps=12345.6, ups=3.4, wpb=3600, bsz=128, num_updates=100", 0,
                3.4, 12345.6},
           Rate{"step {}/1000 | loss 3.0 | norm 1.0 | lr 1e-4 | 45% bf16 MFU | 12345 tok/s", 0, 0, 12345},
           Rate{"step {} | loss 13.8 | lr 1.79e-04 | grad 0.768 | 37.5k tok/s | mfu 37.67%", 0, 0, 37500},
           Rate{"Step {}/ 1000; acc: 5.4; ppl: 30; lr: 0.01; 12000/23456 tok/s; 35 sec;", 0, 0, 23456},
       }) {
    const StatedSteps steps = stated(
        "step 1 loss 0.5\n" + lines(6, [&](int i) { return fmt::format(fmt::runtime(rate.line), 10 * i + 10); }));
    EXPECT_NEAR(steps.samples_per_s.value_or(0), rate.samples, 1e-6) << rate.line;
    EXPECT_NEAR(steps.steps_per_s.value_or(0), rate.steps, 1e-6) << rate.line;
    EXPECT_NEAR(steps.tokens_per_s.value_or(0), rate.tokens, 1e-6) << rate.line;
    EXPECT_FALSE(steps.tokens_per_device) << rate.line;
  }
}

TEST(Stated, TheTimeOfAStepInKerasBars) {
  const std::string bars = lines(10, [](int i) { return fmt::format("{}/100 [==>..] - 5s 50ms/step - loss: 0.5", i); });
  ASSERT_TRUE(stated(bars).steps_per_s);
  EXPECT_NEAR(*stated(bars).steps_per_s, 20, 1e-9);
  const std::string brief = "Epoch 1/5\n100/100 - 200s - 2s/step - loss: 0.5\n";
  ASSERT_TRUE(stated(brief).steps_per_s);
  EXPECT_NEAR(*stated(brief).steps_per_s, 0.5, 1e-9);
  // With its result the time is that of the validation as well.
  EXPECT_FALSE(stated("Epoch 1/5\n100/100 [====] - 50s 500ms/step - loss: 0.5 - val_loss: 0.6\n").steps_per_s);
}

TEST(Stated, TheRateBesideProgressComesFirst) {
  const StatedSteps steps = stated(lines(10, [](int i) {
    return fmt::format("step {} loss 0.5, CurrSamplesPerSec=46.5\nLatency: 0.27s, Samples/sec: {}\n", 10 * i, 4 + i);
  }));
  EXPECT_NEAR(steps.samples_per_s.value_or(0), 46.5, 1e-9);
}

TEST(Stated, BothLinesAboutAStepCount) {
  const StatedSteps steps = stated(lines(9, [](int i) {
    return fmt::format(
        "epoch=0/micro_step={0}/global_step={0}, CurrSamplesPerSec=4.0\n"
        "[Step {1}/100] Loss: 5.1 | Tokens/s: {2}",
        i + 4, i + 3, i == 0 ? 90 : 130);
  }));
  EXPECT_NEAR(steps.samples_per_s.value_or(0), 4, 1e-9);
  EXPECT_NEAR(steps.tokens_per_s.value_or(0), 130, 1e-9);
}

TEST(Stated, RatesOfOneDeviceAreToldAsSuch) {
  EXPECT_FALSE(stated("Iter #0: 328.1 img/sec per GPU\nIter #1: 328.1 img/sec per GPU\n").samples_per_s);
  for (const char* line :
       {"Step 1 | loss:1.5 tokens_per_second_per_gpu:1234.5\n", "step 1 loss 0.5 Tokens/s/device: 1234.5\n",
        "step:  1  loss:  8.1  memory: 10.00GiB(12%)  tps: 1,234  tflops: 100.00  mfu: 33.00%\n"}) {
    const StatedSteps steps = stated(line);
    EXPECT_NEAR(steps.tokens_per_s.value_or(0), 1234.5, 0.5) << line;
    EXPECT_TRUE(steps.tokens_per_device) << line;
  }
}

TEST(Stated, WhatIsNoTimeOfAStep) {
  for (const char* line : {
           "epoch 3 loss 0.5 time: 35.2",                       // unknown since when
           "step 30 loss 0.5 Time 120.5s",                      // since the start
           "Epoch: [0] Total time: 0:10:00 (0.2900 s / it)",    // of one epoch
           "Test: [ 10/79]  time: 0.5  data: 0.4",              // of validation
           "Epoch(val) [1][10/79]  time: 0.5  data_time: 0.4",  // the same
           "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 79, \"time\": 0.5, \"data_time\": 0.4}",
           "step 3 loss 0.5 data: 60000 time: 0.5",  // not part of the step
           "Generating train split: 7473 examples [00:00, 250000.1 examples/s]",
           "1epoch:train:1-100batch: iter_time=1.5e-04, forward_time=0.2, loss=5.0, train_time=0.5",
           "Map: 100%|##########| 7473/7473 [00:01<00:00, 5000.0 examples/s]",
       }) {
    const StatedSteps steps = stated("epoch 1 step 1 loss 0.5\n" + std::string(line) + "\n");
    EXPECT_FALSE(steps.step_s) << line;
    EXPECT_FALSE(steps.data_share) << line;
    EXPECT_FALSE(steps.samples_per_s) << line;
  }
}

TEST(Stated, AveragesOverAnEpochCountEachStepOnce) {
  // Steps of 0.5 s after a first step of 10 s; in the second epoch they take 1 s.
  std::string text;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double sum = 0;
    for (int i = 0; i <= 100; ++i) {
      sum += epoch == 1 ? 1.0 : i == 0 ? 10.0 : 0.5;
      if (i % 25 == 0) {
        text += fmt::format("Epoch: [{}][{}/101]\tTime {:.6f} ({:.6f})\tData 0.1 ({:.6f})\n", epoch, i,
                            epoch == 1 ? 1.0 : 0.5, sum / (i + 1), sum / (i + 1) / 2);
      }
    }
  }
  const StatedSteps steps = stated(text);
  EXPECT_NEAR(steps.step_s.value_or(0), (100 * 0.5 + 101 * 1.0) / 201, 1e-4);
  EXPECT_NEAR(steps.data_share.value_or(0), 0.5, 1e-4);
}

TEST(Stated, ALineStandsForTheStepsSinceTheOneBefore) {
  const StatedSteps steps = stated(
      "step 0 loss 1 step_time: 9.0 data_time: 8.0\nstep 10 loss 1 step_time: 1.0 data_time: 0.5\n"
      "step 40 loss 1 step_time: 3.0 data_time: 0.5\n"
      "step 40 loss 1 step_time: 100.0 data_time: 0.5\n");  // another rank's
  EXPECT_NEAR(steps.step_s.value_or(0), (10 * 1.0 + 30 * 3.0) / 40, 1e-9);
  EXPECT_NEAR(steps.data_share.value_or(0), 0.5 / 2.5, 1e-9);
  EXPECT_NEAR(steps.seconds, 9 + 10 + 90, 1e-9);
}

TEST(Stated, TheFirstBatchOfAnEpochStandsForItselfAlone) {  // as in PaddleRec, which averages over 500 batches
  const std::string epochs = lines(9, [](int i) {
    return fmt::format("epoch: {}, batch_id: {}, loss: 0.5, avg_reader_cost: 0.001 sec, avg_batch_cost: {} sec", i / 3,
                       i % 3 * 500, i % 3 == 0 ? 0.002 : 0.5);
  });
  EXPECT_NEAR(stated(epochs).step_s.value_or(0), 0.5, 0.01);
}

TEST(Stated, APauseInOneStepIsNotThatOfTheOthers) {
  const StatedSteps steps = stated(lines(100, [](int i) {
    return fmt::format("iter {}: loss 3.0, time {}ms, CurrSamplesPerSec={}", i * 10,
                       i % 25 == 0 ? 30000.0 : 200.0 + i / 50.0, i % 25 == 0 ? 0.3 : 40.0);
  }));
  EXPECT_NEAR(steps.step_s.value_or(0), 0.201, 0.001);
  EXPECT_NEAR(steps.samples_per_s.value_or(0), 40, 1e-9);
}

TEST(Stated, WhereEachStepHasALineTheMeanIsExact) {
  const StatedSteps steps = stated(lines(9, [](int i) {
    return fmt::format("step:{} - loss:1.0 - time_per_step:{}", i, i == 0 ? 30 : i % 2 == 0 ? 1 : 3);
  }));
  EXPECT_NEAR(steps.step_s.value_or(0), 2, 1e-9);
}

TEST(Stated, TheBatchOfAllDevices) {
  EXPECT_EQ(stated("global batch size: 512\n").batch, 512);
  EXPECT_EQ(stated("  Total train batch size (w. parallel, distributed & accumulation) = 64\n").batch, 64);
  EXPECT_NEAR(stated("Train: 0 [ 0/30 (0%)] Time: 0.500s, 128.00/s (0.500s, 128.00/s)\n").batch.value_or(0), 64, 1e-9);
  EXPECT_FALSE(stated("epoch 1 loss 0.5 batch size 8\n").batch);
}

TEST(Stated, ASettingIsAValueAndOfOneLoader) {
  Source source("run.log",
                "epoch 1 loss 0.5\n  Instantaneous batch size per device = 8\n"
                "  Total train batch size (w. parallel, distributed & accumulation) = 64\nglobal batch size: 512\n");
  EXPECT_FALSE(read_text_log(source).settings.contains("batch.size"));
}

TEST(Stated, WhatIsOffloadedIsNotTheDevice) {
  const auto device = [](std::string_view bytes) {
    Source source("run.log", bytes);
    return read_text_log(source).device;
  };
  EXPECT_EQ(device("device: cpu\nepoch 1 loss 0.5\n"), "cpu");
  EXPECT_EQ(device("Process rank: 0, device: cuda:0\n  \"offload_param\": {\"device\": \"cpu\"}\n"), "cuda");
  EXPECT_EQ(device("{\"offload_param\": {\"device\": \"cpu\"}}\nepoch 1 loss 0.5\n"), std::nullopt);
}

TEST(Stated, AnAverageBesideAResultOfValidation) {
  const auto line = [](int i) {
    return fmt::format("step:{}/3040 val_loss:3.5 train_time:{}ms step_avg:400.00ms", i * 125, i * 50'000);
  };
  EXPECT_NEAR(*stated(lines(10, line)).step_s, 0.4, 0.008);
}

TEST(Stated, AnEpochsSummaryIsNoStep) {
  const auto line = [](int i) {
    return fmt::format(
        "json_stats: {{\"_type\": \"train_epoch\", \"dt\": 0.8, \"dt_data\": 0.8, \"dt_net\": 1.3, \"epoch\": "
        "\"{}/400\", \"loss\": 0.1}}",
        i);
  };
  const StatedSteps steps = stated(lines(10, line));
  EXPECT_FALSE(steps.step_s);
  EXPECT_FALSE(steps.data_share);
}

TEST(Stated, TheRateOfValidationIsNotThatOfTraining) {
  const auto line = [](int i) {
    return fmt::format(
        "- Train | Epoch {0} | 143/573 | 1.40 it/sec | Loss 0.09\n- Valid | Epoch {0} | 1/3 | 0.30 it/sec | Loss 0.1\n"
        "- Valid | Epoch {0} | 2/3 | 0.30 it/sec | Loss 0.1",
        i);
  };
  EXPECT_NEAR(*stated(lines(10, line)).steps_per_s, 1.4, 0.01);
}

}  // namespace
}  // namespace unidle::logs
