// When a log's counters reached their ends, and which words claim that a run did.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "unidle/logs/text_log.h"

namespace unidle::logs {
namespace {

TextLog log_told_by(const std::string& bytes) {
  Source source("run.log", bytes);
  return read_text_log(source);
}
bool is_whole(const std::string& bytes) { return log_told_by(bytes).is_whole; }
bool claims(const std::string& bytes) { return log_told_by(bytes).claim.has_value(); }

/// `form` once for each unit of a loop; {} is the unit.
std::string loop(const char* form, int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) {
    text += fmt::format(fmt::runtime(form), i);
  }
  return text;
}

/// PyTorch's ImageNet example: epochs and batches start at 0, 391 batches, a line every 40.
std::string imagenet(int epochs, int batches) {
  std::string text = "Namespace(arch='resnet18', epochs=3, batch_size=256)\n";
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const int end = epoch == epochs - 1 ? batches : 391;
    for (int batch = 0; batch < end; batch += 40) {
      text += fmt::format("Epoch: [{}][{}/391]\tTime 0.5 ( 0.5)\tLoss 2.1\n", epoch, batch);
    }
    text += end == 391 ? " * Acc@1 61.2 Acc@5 80.1\n" : "";
  }
  return text;
}

TEST(Completion, TheLastUnitIsTheLastOfItsTotal) {
  EXPECT_TRUE(is_whole(loop("epoch {}/10 loss 0.5\n", 1, 11)));
  EXPECT_TRUE(is_whole(loop("Epoch {}/10 loss 0.5\n", 0, 10)));
  EXPECT_TRUE(is_whole(loop("epoch {} of 10, val loss 0.5\n", 1, 11) + "saved model.pt\n"));
  EXPECT_TRUE(is_whole(loop("step {}/5000 loss 0.5\n", 4900, 5001)));
  EXPECT_TRUE(is_whole(loop("iter {}/40000 loss 0.5\n", 39990, 40001) + "aAcc 0.9\n"));
  EXPECT_FALSE(is_whole(loop("epoch {}/10 loss 0.5\n", 1, 10)));
  EXPECT_FALSE(is_whole(loop("Epoch {}/10 loss 0.5\n", 0, 9)));
  EXPECT_FALSE(is_whole(loop("Epoch {}/10 loss 0.5\n", 5, 10)));  // resumed: it is unknown where the count started
  EXPECT_FALSE(is_whole(loop("epoch {} loss 0.5\n", 1, 11)));
}

TEST(Completion, TheTotalMayStandInTheArguments) {
  for (const char* arguments :
       {"train.py --epochs 10 --lr 0.1\n", "Namespace(batch_size=4, epochs=10)\n", "max_epochs: 10\n",
        "{'num_epochs': 10}\n", "  Num Epochs = 10\n", "Starting training for 10 epochs...\n", "--num-epochs=10\n"}) {
    EXPECT_TRUE(is_whole(arguments + loop("epoch {} loss 0.5\n", 1, 11))) << arguments;
    EXPECT_FALSE(is_whole(arguments + loop("epoch {} loss 0.5\n", 1, 10))) << arguments;
  }
  EXPECT_TRUE(is_whole("max_iters = 300\n" + loop("iter {}: loss 0.5, time 5ms\n", 0, 301)));
  EXPECT_TRUE(is_whole(loop("{{\"current_steps\": {}0, \"total_steps\": 100, \"loss\": 0.5}}\n", 1, 11)));
  for (const char* arguments : {"warmup_epochs=10\n", "save_epochs: 10\n", "epochs=10\nepochs: 20\n", "10 epochs\n"}) {
    EXPECT_FALSE(is_whole(arguments + loop("epoch {} loss 0.5\n", 1, 11))) << arguments;
  }
}

TEST(Completion, AnEpochThatIsOnlyAnnouncedIsNotDone) {
  const std::string both = "Epoch {0}/10\ntrain loss 0.5\nval loss 0.6\n";
  EXPECT_TRUE(is_whole(loop(both.c_str(), 1, 11)));
  EXPECT_FALSE(is_whole(loop(both.c_str(), 1, 10) + "Epoch 10/10\n"));
  EXPECT_FALSE(is_whole(loop(both.c_str(), 1, 10) + "Epoch 10/10\ntrain loss 0.5\n"));
  EXPECT_FALSE(is_whole(loop("Epoch {}/10\n", 1, 11)));
  EXPECT_FALSE(is_whole("Epoch 1/1\n"));
  const std::string ended = "=== Epoch {0}/4 ===\nsampled\n==end-of-epoch {0}==\n";
  EXPECT_TRUE(is_whole(loop(ended.c_str(), 1, 5)));
  EXPECT_FALSE(is_whole(loop(ended.c_str(), 1, 4) + "=== Epoch 4/4 ===\nsampled\n"));
  const std::string sampled = "=== Epoch {0}/4 ===\n**Step 1:** add\n**Step 2:** sum\n**Step 3:** check\n";
  const std::string short_one = "=== Epoch 4/4 ===\n**Step 1:** add\n";  // of generated text
  EXPECT_TRUE(is_whole(loop(sampled.c_str(), 1, 4) + short_one + "==end-of-epoch 4==\n"));
  EXPECT_FALSE(is_whole(loop(sampled.c_str(), 1, 4) + short_one));
}

TEST(Completion, InnerLoopsMustBeThroughAsWell) {
  const std::string form = "epoch {0}/10 batch 391/391 loss 0.5\n";
  EXPECT_TRUE(is_whole(loop(form.c_str(), 1, 11)));
  EXPECT_FALSE(is_whole(loop(form.c_str(), 1, 10) + "epoch 10/10 batch 40/391 loss 0.5\n"));
  EXPECT_TRUE(is_whole(imagenet(3, 391)));
  EXPECT_FALSE(is_whole(imagenet(3, 200)));
  EXPECT_FALSE(is_whole(imagenet(2, 391)));
}

TEST(Completion, OneEpochOfUnknownManyIsNotTheWhole) {
  EXPECT_FALSE(is_whole(loop("epoch 0 step {}/391 loss 0.5\n", 380, 392)));
  EXPECT_FALSE(is_whole(loop("batch {}/391 loss 0.5\n", 380, 392)));
  EXPECT_TRUE(is_whole("epoch 0 step 1/391 loss 0.5\n" + loop("epoch 1 step {}/391 loss 0.5\n", 380, 392)));
}

TEST(Completion, AnyValueIsAResult) {
  EXPECT_TRUE(is_whole(loop("Epoch [{}/10] Recon: 0.0021 | KL: 0.0197\n", 1, 11)));
  EXPECT_FALSE(is_whole(loop("Epoch [{}/10]\n", 1, 11)));  // announced
  const std::string saves = loop("epoch {0}/10 loss 0.5\nSaved best model at epoch {0} with loss 0.5\n", 1, 10);
  EXPECT_TRUE(is_whole(saves + "epoch 10/10 loss 0.6\n"));
  EXPECT_TRUE(is_whole(loop("epoch {}/10\nAvg Loss:  tensor(197.9, grad_fn=<AddBackward0>)\n", 1, 11)));
  EXPECT_FALSE(is_whole(loop("2024-03-05 10:00:00.123 | INFO - Epoch {}/10\n", 1, 11)));
  EXPECT_FALSE(is_whole(loop("Epoch {}/10, lr: 0.001\n", 1, 11)));
}

TEST(Completion, LoopsThatAreRepeated) {
  const std::string fold = loop("epoch {}/5 loss 0.5\n", 1, 6);
  EXPECT_TRUE(is_whole(fold + fold));  // a log that is cut off seldom ends exactly with a fold
  EXPECT_FALSE(is_whole(fold + loop("epoch {}/5 loss 0.5\n", 1, 5)));
  const std::string steps = loop("step {}/5 loss 0.5\n", 1, 6);
  EXPECT_FALSE(is_whole(steps + steps));                              // of epochs that are not counted
  EXPECT_TRUE(is_whole(loop("epoch {}/5 loss 0.5\n", 1, 4) + fold));  // an attempt that stopped early
  EXPECT_FALSE(is_whole("Fold 3/5\n" + fold + "Fold 4/5\n" + fold));
  EXPECT_FALSE(is_whole("Round 1\n" + fold + "Round 2\n" + fold));
  EXPECT_FALSE(is_whole("Round 3/3: augmenting\n" + loop("epoch {} loss 0.5\n", 1, 7)));
}

TEST(Completion, KerasAndYolo) {
  const std::string keras = "Epoch {0}/3\n313/313 [==============================] - 9s - loss: 0.5 - val_loss: 0.6\n";
  EXPECT_TRUE(is_whole(loop(keras.c_str(), 1, 4)));
  EXPECT_FALSE(is_whole(loop(keras.c_str(), 1, 3) + "Epoch 3/3\n 40/313 [==>...........] - ETA: 8s - loss: 0.5\n"));
  const std::string yolo =
      "  {0}/3  17.1G  1.54  1.24: 100%|####| 85/85 [01:20<00:00,  1.05it/s]\n"
      "  Class  Images  mAP50: 100%|####| 8/8 [00:05<00:00,  1.57it/s]\n";
  EXPECT_TRUE(is_whole(loop(yolo.c_str(), 1, 4)));
  EXPECT_FALSE(is_whole(loop(yolo.c_str(), 1, 3)));
  EXPECT_FALSE(
      is_whole(loop(yolo.c_str(), 1, 3) + "  3/3  17.1G  1.54  1.24:  47%|##  | 40/85 [00:40<00:40,  1.05it/s]\n"));
}

TEST(Completion, OneBarOverTheWholeRun) {
  const auto bar = [](int done) {
    return fmt::format("\r{:3}%|####| {}/200 [{:02}:{:02}<00:00,  1.5s/it]", done / 2, done, done / 40, done % 40);
  };
  EXPECT_TRUE(is_whole(bar(1) + bar(100) + bar(200) + "\n"));
  EXPECT_FALSE(is_whole(bar(1) + bar(100) + "\n"));
  EXPECT_FALSE(is_whole(bar(200) + bar(1) + bar(200) + "\n"));  // number of epochs unknown
  EXPECT_FALSE(is_whole(bar(1) + bar(200) + "\n" + std::string(20, '\n') + "Starting training\n"));
  EXPECT_FALSE(is_whole("sampling loop time step: 100%|####| 50/50 [00:02<00:00, 25.1it/s]\n"));
  const std::string inner =
      "\rIteration:   0%|    | 0/498 [00:00<?, ?it/s]\rIteration: 100%|####| 498/498 [10:00<00:00, 1.2s/it]";
  const std::string nested = "Epoch:  50%|##  | 1/2 [10:00<10:00, 600s/it]" + inner + inner +
                             "\rEpoch: 100%|####| 2/2 [20:00<00:00, 600s/it]\n";
  EXPECT_TRUE(is_whole(nested + std::string(20, '\n') + "results: {}\n"));
  EXPECT_FALSE(is_whole("100%|####| 9912422/9912422 [00:01<00:00, 9000000.1it/s]\n"));  // a download
  EXPECT_FALSE(is_whole("Map: 100%|####| 2000/2000 [00:40<00:00, 50.1 examples/s]\n"));
}

TEST(Claims, EarlyStops) {
  for (const char* words :
       {"Early stopping triggered.", "Early stopping at epoch 12", "Epoch 00023: early stopping", "Stopping early!",
        "EarlyStopping counter: 8 out of 8", "Early stopping in epoch 65", "Signaling Trainer to stop."}) {
    EXPECT_TRUE(claims(words + std::string("\n"))) << words;
  }
  for (const char* words : {"EarlyStopping counter: 3 out of 8", "early_stopping_patience: 5",
                            "Early stopping patience: 10", "EarlyStopping(monitor='val_loss')"}) {
    EXPECT_FALSE(claims(words + std::string("\n"))) << words;
  }
}

TEST(Claims, WordsOfTheEnd) {
  for (const char* words : {"Finish Training", "Finished after 800000 iterations.", "Final test accuracy: 61.78.",
                            "Total training time: 0:30:12 (0.05 s / it)", "Training time 0:12:33",
                            "Overall training speed: 98 iterations in 0:01:19", "State: COMPLETED (exit code 0)"}) {
    EXPECT_TRUE(claims(words + std::string("\n"))) << words;
  }
  for (const char* words :
       {"epoch 3 training time 12 s", "成功读取标注好的数据", "State: RUNNING", "State: COMPLETED (exit code 1)"}) {
    EXPECT_FALSE(claims(words + std::string("\n"))) << words;
  }
}

TEST(Claims, EndsOfEverythingAndBareOnes) {
  for (const char* words :
       {"All folds completed in 2.37 h", "  LOOCV complete in 2.37h",
        "=== Experiment finished! ===", "2026-03-02 00:41:53,051 - INFO - Job is done.", "Done.", "finish", "全部完成",
        "Final avg. MSE: 122.7", "Evaluating best model on 'test'...", "Training time: 6.89 min", "Finetuning done!"}) {
    EXPECT_TRUE(claims("epoch 3 loss 0.5\n" + std::string(words) + "\n")) << words;
  }
  for (const char* words :
       {"Fold 3 complete in 12 s", "experiment finished 3 of 7 parts", "Loading data ... done", "job finished_at: none",
        "validation done", "final layer: linear", "Saved best model", "Final results will be saved to runs/3",
        "Final score function: softmax", "Evaluation: best model written to latest.pt"}) {
    EXPECT_FALSE(claims("epoch 3 loss 0.5\n" + std::string(words) + "\n")) << words;
  }
  const std::string part = "epoch {0} loss 0.5\nDone.\n";
  const TextLog habit = log_told_by(loop(part.c_str(), 1, 4));
  EXPECT_LT(habit.claim->line, habit.lines);  // printed after every part
  const std::string run = "epoch 1 loss 0.5\nepoch 2 loss 0.4\nDone.\n";
  const TextLog second = log_told_by(run + run);
  EXPECT_EQ(second.claim->line, second.lines);
}

TEST(Claims, ACountOfBeforeIsNoProgress) {
  const TextLog log = log_told_by("epoch 20 loss 0.5\nTraining finished\nBest mAP: 61.5% (at Epoch 5)\n");
  EXPECT_EQ(log.counter("epoch")->restarts, 0);
  EXPECT_EQ(log.counted().changes, log.before_claim.changes);
}

}  // namespace
}  // namespace unidle::logs
