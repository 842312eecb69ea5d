#include "unidle/train/trainer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/device.h"
#include "unidle/train/testing/line_workload.h"

namespace unidle::train {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::LineWorkload;

struct Outcome {
  Summary summary;
  std::vector<double> losses;
  std::vector<at::Tensor> parameters;
  int validations = 0;
};

Outcome train_line(std::vector<std::string> overrides, const TrainOptions& options = {}) {
  overrides.insert(overrides.begin(), {"cpu.threads=1", "train.warmup_samples=4", "optimizer.lr=0.01", "device=cpu"});
  const Config config = Config::from_text("workload: line\n", "line.yaml", overrides);
  configure_torch(config);
  LineWorkload workload;
  Events events;
  Trainer trainer(workload, config, at::kCPU, events, options);
  Outcome outcome{trainer.run(), workload.losses, {}, workload.validations};
  for (const at::Tensor& parameter : workload.model().parameters()) {
    outcome.parameters.push_back(parameter.detach().clone());
  }
  return outcome;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  }
  return largest;
}

TEST(Trainer, LearnsAndSummarises) {
  const Outcome outcome = train_line({"train.samples=402", "optimizer.fused=true", "metrics.interval=7"});
  EXPECT_EQ(outcome.summary.steps, 100);  // whole steps of 4
  EXPECT_EQ(outcome.summary.samples, 400);
  EXPECT_DOUBLE_EQ(outcome.summary.loss_first, static_cast<float>(outcome.losses.front()));
  EXPECT_DOUBLE_EQ(outcome.summary.loss_last, static_cast<float>(outcome.losses.back()));
  EXPECT_LT(outcome.summary.loss_last, 0.5 * outcome.summary.loss_first);
  EXPECT_GE(outcome.summary.samples_per_s, outcome.summary.end_to_end_samples_per_s);
  EXPECT_EQ(outcome.summary.effective.at("optimizer.fused"), "true");
  EXPECT_EQ(outcome.summary.effective.at("compile.mode"), "off");
}

TEST(Trainer, WorkersAndMetricsIntervalChangeNoLoss) {
  const Outcome plain = train_line({"train.samples=64"});
  const Outcome other = train_line({"train.samples=64", "loader.workers=3", "metrics.interval=5"});
  EXPECT_THAT(other.losses, ElementsAreArray(plain.losses));
  EXPECT_TRUE(equal(plain.parameters, other.parameters));
}

TEST(Trainer, FusedAndUnfusedUpdatesAgree) {
  const Outcome plain = train_line({"train.samples=80", "optimizer.fused=false"});
  const Outcome fused = train_line({"train.samples=80", "optimizer.fused=true"});
  EXPECT_LT(largest_difference(plain.parameters, fused.parameters), 1e-5);
  EXPECT_FALSE(equal(plain.parameters, train_line({"train.samples=40"}).parameters));
}

TEST(Trainer, AccumulationOfHalvesEqualsTheWhole) {
  // Noise is drawn once a micro-batch: take runs without difference in draws by comparing after one step.
  const Outcome whole = train_line({"train.samples=4", "batch.size=4"});
  const Outcome halves = train_line({"train.samples=4", "batch.size=2", "batch.accumulation=2"});
  EXPECT_EQ(halves.summary.steps, 1);
  EXPECT_EQ(halves.losses.size(), 2U);
  EXPECT_NEAR(halves.summary.loss_first, whole.summary.loss_first, 0.01);
  EXPECT_LT(largest_difference(whole.parameters, halves.parameters), 1e-5);
}

TEST(Trainer, ResumesBitForBit) {
  for (const char* fused : {"optimizer.fused=true", "optimizer.fused=false"}) {
    const TemporaryFolder folder;
    const std::vector<std::string> common = {fused,
                                             "loader.workers=2",
                                             "optimizer.warmup_steps=12",
                                             "grad.clip_norm=0.5",
                                             "checkpoint.interval=1000000",
                                             "checkpoint.folder=" + folder.path().string()};
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), common.begin(), common.end());
      return more;
    };
    const Outcome whole = train_line(with({"train.samples=80"}));
    train_line(with({"train.samples=36"}));
    TrainOptions options;
    options.resume = folder.path();  // the file's own path does as well, see RefusesWhatIsNone
    const Outcome rest = train_line(with({"train.samples=80"}), options);
    EXPECT_EQ(rest.summary.samples, 44);
    EXPECT_TRUE(equal(whole.parameters, rest.parameters));
    EXPECT_THAT(rest.losses, ElementsAreArray(whole.losses.begin() + 9, whole.losses.end()));
  }
}

TEST(Trainer, ValidatesAtEpochsAndAtTheEnd) {
  EXPECT_EQ(train_line({"train.samples=48", "validation.interval=1"}).validations, 4);  // 12 samples an epoch
  EXPECT_EQ(train_line({"train.samples=48", "validation.interval=2"}).validations, 2);
  EXPECT_EQ(train_line({"train.samples=48", "validation.interval=0"}).validations, 1);
}

TEST(Trainer, StopsAfterTheStepAndKeepsACheckpoint) {
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  TrainOptions options;
  options.stop = &stop;
  options.on_progress = [&](std::int64_t samples, std::int64_t, double) { stop = samples >= 12; };
  const Outcome outcome = train_line(
      {"train.samples=400", "checkpoint.interval=400", "checkpoint.folder=" + folder.path().string()}, options);
  EXPECT_TRUE(outcome.summary.stopped);
  EXPECT_EQ(outcome.summary.samples, 12);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "checkpoint.pt"));
}

Error failure_of(const std::vector<std::string>& overrides, const TrainOptions& options = {}) {
  try {
    train_line(overrides, options);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "", "no failure"};
}

TEST(Checkpoint, AFailedWriteNamesTheFileAndKeepsTheOldOne) {
  const TemporaryFolder folder;
  const std::vector<std::string> overrides = {"train.samples=8", "checkpoint.interval=8",
                                              "checkpoint.folder=" + folder.path().string()};
  train_line(overrides);
  const std::string before = read_file(folder.path() / "checkpoint.pt");

  // A limit on the size of files stands for the full disk.
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = failure_of(overrides);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.subject(), HasSubstr("checkpoint.pt"));
  EXPECT_EQ(read_file(folder.path() / "checkpoint.pt"), before);
}

TEST(Checkpoint, AFolderThatCannotBeMadeIsNamed) {
  const Error error = failure_of({"train.samples=8", "checkpoint.interval=8", "checkpoint.folder=/dev/null/here"});
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.subject(), HasSubstr("/dev/null/here"));
}

TEST(Checkpoint, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "checkpoint.pt", "not a checkpoint");
  TrainOptions options;
  options.resume = folder.path() / "checkpoint.pt";
  EXPECT_EQ(failure_of({"train.samples=8"}, options).code(), ErrorCode::kInput);
}

TEST(Optimizer, ClippingBoundsTheCommonNorm) {
  const std::vector<at::Tensor> gradients = {at::full({3}, 3.0F), at::full({4}, -4.0F)};
  clip_gradients(gradients, 1.0);
  EXPECT_NEAR(at::cat(gradients).norm().item<double>(), 1.0, 1e-5);
  const at::Tensor kept = gradients[0].clone();
  clip_gradients(gradients, 5.0);
  EXPECT_TRUE(at::equal(kept, gradients[0]));
}

TEST(Optimizer, WarmUpRisesToTheRate) {
  EXPECT_DOUBLE_EQ(scheduled_rate(1.0, 4, 0), 0.25);
  EXPECT_DOUBLE_EQ(scheduled_rate(1.0, 4, 3), 1.0);
  EXPECT_DOUBLE_EQ(scheduled_rate(1.0, 4, 100), 1.0);
  EXPECT_DOUBLE_EQ(scheduled_rate(1.0, 0, 0), 1.0);
}

TEST(Precision, OverflowSkipsTheStepAndHalvesTheScale) {
  for (const bool fused : {true, false}) {
    Precision precision("fp16", at::kCPU);
    at::Tensor parameter = at::ones({4}).requires_grad_(true);
    AdamW optimizer({parameter}, {.fused = fused});
    parameter.mutable_grad() = at::full({4}, std::numeric_limits<float>::infinity());
    precision.unscale({parameter.grad()});
    optimizer.step(0.1, precision.found_inf());
    precision.update();
    EXPECT_TRUE(at::equal(parameter.detach(), at::ones({4}))) << fused;
    EXPECT_EQ(precision.state()[0].item<float>(), 32768.0F);

    parameter.mutable_grad() = at::full({4}, 32768.0F);  // 1 after unscaling
    precision.unscale({parameter.grad()});
    optimizer.step(0.1, precision.found_inf());
    EXPECT_NEAR(parameter[0].item<double>(), 1 - 0.1 * 0.01 - 0.1, 1e-4) << fused;
  }
}

TEST(Precision, ReadsTheModeBackFromTorch) {
  EXPECT_EQ(Precision("off", at::kCPU).effective(), "off");
  EXPECT_EQ(Precision("bf16", at::kCPU).effective(), "bf16");
  EXPECT_EQ(Precision("fp16", at::kCPU).effective(), "fp16");
}

}  // namespace
}  // namespace unidle::train
