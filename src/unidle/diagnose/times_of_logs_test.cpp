// How a run spent its time, and how fast it was, where its lines have no times.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "unidle/diagnose/testing/log_signals.h"

namespace unidle::diagnose::testing {
namespace {

std::string bar(const char* label, int steps, int seconds, const char* rate) {
  std::string text;
  for (int step = 0; step <= steps; step += steps / 10) {
    const int clock = seconds * step / steps;
    text += fmt::format("\r{}{:3}%|##| {}/{} [{:02}:{:02}<00:10, {}, loss=0.5]", label, step * 100 / steps, step, steps,
                        clock / 60, clock % 60, rate);
  }
  return text + "\n";
}

TEST_F(LogSignals, TheRunThatTransformersStatesHoldsItsValidations) {
  const std::string step = "{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n";
  const std::string validation = "{'eval_loss': 0.4, 'eval_runtime': 40.0, 'eval_steps_per_second': 3.0, 'epoch': 1}\n";
  const std::string end = "{'train_runtime': 200.0, 'train_samples_per_second': 32.0, 'train_loss': 0.5, 'epoch': 1}\n";
  const std::string train_table = "***** train metrics *****\n  train_runtime            = 0:03:20.00\n";
  const std::string table = "***** eval metrics *****\n  eval_loss = 0.4\n  eval_runtime            = 0:00:40.00\n";
  const std::string run = step + validation + step + validation;
  const PhaseTimes inside = diagnose_logs({file("a.log", run + end)}).time;
  EXPECT_DOUBLE_EQ(inside.train, 120);
  EXPECT_DOUBLE_EQ(inside.validate, 80);
  const PhaseTimes behind = diagnose_logs({file("b.log", run + end + train_table + validation + table)}).time;
  EXPECT_DOUBLE_EQ(behind.train, 120);
  EXPECT_DOUBLE_EQ(behind.validate, 120);
  const PhaseTimes cut_off = diagnose_logs({file("c.log", bar("", 100, 150, "1.50s/it") + run)}).time;
  EXPECT_DOUBLE_EQ(cut_off.train, 150 - 80);
  EXPECT_DOUBLE_EQ(cut_off.validate, 80);
}

TEST_F(LogSignals, ABarMayCountSamples) {
  for (const char* rate : {"32.00img/s", " 0.03s/img", "32.00samples/s"}) {
    const Diagnosis diagnosis = diagnose_logs({file("a.log", bar("Epoch 1/5: ", 6400, 200, rate))});
    EXPECT_FALSE(diagnosis.steps_per_s) << rate;
    ASSERT_TRUE(diagnosis.samples_per_s) << rate;
    EXPECT_DOUBLE_EQ(*diagnosis.samples_per_s, 32) << rate;
  }
  EXPECT_DOUBLE_EQ(*diagnose_logs({file("b.log", bar("", 100, 200, " 0.50it/s"))}).steps_per_s, 0.5);
}

TEST_F(LogSignals, TrainingWithoutTimes) {
  EXPECT_EQ(answer(diagnose_logs({file("a.log", "epoch 1/9 loss 0.5\nepoch 2/9 loss 0.4\n")})),
            "What was read tells of training, but not what its time went into.");
}

TEST_F(LogSignals, AGpuThatIsAlwaysBusy) {
  std::string log = "utilization.gpu [%]\n";
  for (int i = 0; i < 30; ++i) {
    log += "100 %\n";
  }
  EXPECT_EQ(answer(diagnose_logs({file("gpu.csv", log)})),
            "Your GPU is 100 % busy: nothing in what was read makes it wait.");
}

TEST_F(LogSignals, AGpuLogWithoutUtilisationSaysSo) {
  const std::string rows = "index, utilization.gpu [%]\n0, [N/A]\n0, [N/A]\n0, [N/A]\n0, [N/A]\n0, [N/A]\n";
  EXPECT_THAT(answer(diagnose_logs({file("mig.csv", rows)})),
              ::testing::HasSubstr("no utilisation of a GPU was read from mig.csv"));
}

}  // namespace
}  // namespace unidle::diagnose::testing
