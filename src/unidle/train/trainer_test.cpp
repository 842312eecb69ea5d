#include "unidle/train/trainer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <functional>

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
  int validations = 0;  // one by one
};

using Change = std::function<void(LineWorkload&)>;

Outcome train_line(std::vector<std::string> overrides, const TrainOptions& options = {}, bool holds_out = false,
                   const Change& change = {}) {
  overrides.insert(overrides.begin(), {"cpu.threads=1", "train.warmup_samples=4", "optimizer.lr=0.01", "device=cpu"});
  const Config config = Config::from_text("workload: line\n", "line.yaml", overrides);
  configure_torch(config);
  LineWorkload workload(holds_out);
  if (change) {
    change(workload);
  }
  Events events;
  Trainer trainer(workload, config, at::kCPU, events, options);
  Outcome outcome{trainer.run(), workload.losses, {}, static_cast<int>(workload.validated.size()) / 12};
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
  EXPECT_DOUBLE_EQ(outcome.summary.loss_first.value(), static_cast<float>(outcome.losses.front()));
  EXPECT_DOUBLE_EQ(outcome.summary.loss_last.value(), static_cast<float>(outcome.losses.back()));
  EXPECT_LT(outcome.summary.loss_last.value(), 0.5 * outcome.summary.loss_first.value());
  EXPECT_GE(outcome.summary.samples_per_s, outcome.summary.end_to_end_samples_per_s);
  EXPECT_EQ(outcome.summary.effective.at("optimizer.fused"), "true");
  EXPECT_EQ(outcome.summary.effective.at("compile.mode"), "off");
}

TEST(Trainer, NoRunIsLongerThanItWasAskedFor) {
  const Outcome all = train_line({"train.samples=7", "batch.size=64"});
  EXPECT_EQ(all.summary.samples, 7);
  EXPECT_EQ(all.summary.steps, 1);
  EXPECT_EQ(all.summary.effective.at("batch.size"), "7");
  const Outcome parts = train_line({"train.samples=11", "batch.size=4", "batch.accumulation=4"});
  EXPECT_EQ(parts.summary.samples, 8);
  EXPECT_EQ(parts.summary.effective.at("batch.size"), "2");
}

TEST(Trainer, WorkersAndMetricsIntervalChangeNoLoss) {
  const Outcome plain = train_line({"train.samples=64"});
  const Outcome other = train_line({"train.samples=64", "loader.workers=3", "metrics.interval=5"});
  EXPECT_THAT(other.losses, ElementsAreArray(plain.losses));
  EXPECT_TRUE(equal(plain.parameters, other.parameters));
}

TEST(Trainer, DataOnTheDeviceChangesNoLoss) {
  const Outcome plain = train_line({"train.samples=64"}, {}, true);
  const Outcome other = train_line({"train.samples=64", "data.on_device=true", "loader.workers=1"}, {}, true);
  EXPECT_THAT(other.losses, ElementsAreArray(plain.losses));
  EXPECT_TRUE(equal(plain.parameters, other.parameters));
  EXPECT_EQ(plain.summary.metric, other.summary.metric);
  EXPECT_EQ(plain.summary.metric.at("samples"), 12);
  EXPECT_EQ(other.summary.effective.at("data.on_device"), "true");
  EXPECT_EQ(plain.validations, 0);  // in batches
}

TEST(Trainer, FusedAndUnfusedUpdatesAgree) {
  const Outcome plain = train_line({"train.samples=80", "optimizer.fused=false"});
  const Outcome fused = train_line({"train.samples=80", "optimizer.fused=true"});
  EXPECT_LT(largest_difference(plain.parameters, fused.parameters), 1e-5);
  EXPECT_FALSE(equal(plain.parameters, train_line({"train.samples=40"}).parameters));
}

TEST(Trainer, AccumulationOfHalvesEqualsTheWhole) {
  // Noise is drawn once per micro-batch: compare after one step, before draws differ.
  const Outcome whole = train_line({"train.samples=4", "batch.size=4"});
  const Outcome halves = train_line({"train.samples=4", "batch.size=2", "batch.accumulation=2"});
  EXPECT_EQ(halves.summary.steps, 1);
  EXPECT_EQ(halves.losses.size(), 2U);
  EXPECT_NEAR(halves.summary.loss_first.value(), whole.summary.loss_first.value(), 0.01);
  EXPECT_LT(largest_difference(whole.parameters, halves.parameters), 1e-5);
}

TEST(Trainer, GradientsWithoutAGraphTrainTheSame) {
  const auto without_graph = [](LineWorkload& workload) { workload.without_graph = true; };
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"train.samples=40"},
                                                   {"train.samples=40", "batch.size=2", "batch.accumulation=4",
                                                    "grad.clip_norm=0.5", "optimizer.zero_to_none=false"}}) {
    const Outcome plain = train_line(settings);
    const Outcome direct = train_line(settings, {}, false, without_graph);
    EXPECT_THAT(direct.losses, ElementsAreArray(plain.losses));
    EXPECT_EQ(direct.summary.loss_last, plain.summary.loss_last);
    EXPECT_TRUE(equal(direct.parameters, plain.parameters));
  }
}

/// All settings with state of their own.
const std::vector<std::vector<std::string>> kStatefulRuns = {
    {"optimizer.fused=true", "optimizer.warmup_steps=3", "grad.clip_norm=0.5", "loader.workers=2"},
    {"optimizer.fused=false", "optimizer.schedule=cosine", "ema.decay=0.9", "train.on_nan=skip"},
    {"optimizer.name=sgd", "optimizer.schedule=one-cycle", "batch.size=2", "batch.accumulation=2"},
};

TEST(Trainer, ResumesBitForBitFromEveryStep) {
  for (const std::vector<std::string>& run : kStatefulRuns) {
    const TemporaryFolder folder;
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), run.begin(), run.end());
      more.insert(more.end(), {"train.samples=40", "checkpoint.folder=" + folder.path().string()});
      return more;
    };
    const Outcome whole = train_line(with({"checkpoint.interval=4", "checkpoint.keep=100"}), {}, true);
    const auto all = checkpoints_in(folder.path());
    ASSERT_EQ(all.size(), 10U);
    for (std::size_t back = 1; back < all.size(); ++back) {
      TrainOptions options;
      options.resume = all[back];
      const Outcome rest = train_line(with({}), options, true);
      EXPECT_EQ(rest.summary.steps, static_cast<std::int64_t>(back));
      EXPECT_TRUE(equal(whole.parameters, rest.parameters)) << run[0] << ", " << back << " steps from the end";
      EXPECT_EQ(whole.summary.metric, rest.summary.metric);  // with the averaged weights
      EXPECT_TRUE(std::equal(rest.losses.rbegin(), rest.losses.rend(), whole.losses.rbegin()));
    }
  }
}

TEST(Trainer, ADeterministicRunRefusesOperationsThatAreNot) {
  EXPECT_EQ(train_line({"train.samples=8"}).summary.effective.at("train.deterministic"), "false");
  at::zeros({4}).put_(at::zeros({1}, at::kLong), at::ones({1}));
  EXPECT_EQ(train_line({"train.samples=8", "train.deterministic=true"}).summary.effective.at("train.deterministic"),
            "true");
  EXPECT_THROW(at::zeros({4}).put_(at::zeros({1}, at::kLong), at::ones({1})), c10::Error);
  train_line({"train.samples=8"});  // the next run in this process resets it
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
}

TEST(Trainer, AveragedWeightsAreValidatedAndNotTrained) {
  const Outcome plain = train_line({"train.samples=80"}, {}, true);
  const Outcome averaged = train_line({"train.samples=80", "ema.decay=0.95"}, {}, true);
  EXPECT_TRUE(equal(plain.parameters, averaged.parameters));
  EXPECT_NE(plain.summary.metric.at("mse"), averaged.summary.metric.at("mse"));
}

TEST(Trainer, MemoryThatRunsOutHalvesTheMicroBatchAndChangesNothingElse) {
  const Outcome plain = train_line({"train.samples=48", "batch.size=12", "metrics.interval=3"}, {}, true);
  const Outcome shrunk = train_line({"train.samples=48", "batch.size=12", "metrics.interval=3"}, {}, true,
                                    [](LineWorkload& workload) { workload.most_samples = 4; });
  EXPECT_EQ(shrunk.summary.effective.at("batch.size"), "3");
  EXPECT_EQ(shrunk.summary.effective.at("batch.accumulation"), "4");
  EXPECT_EQ(shrunk.summary.steps, 4);
  EXPECT_EQ(shrunk.losses.size(), 16U);
  EXPECT_LT(largest_difference(plain.parameters, shrunk.parameters), 1e-3);  // of the noise in the loss
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
  options.on_progress = [&](const Progressed& now) { stop = now.samples >= 12; };
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

  // A limit on file size simulates a full disk.
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = failure_of(overrides);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.subject(), HasSubstr("checkpoint-000000000008.pt"));
  EXPECT_EQ(read_file(folder.path() / "checkpoint.pt"), before);
}

TEST(Checkpoint, AFolderThatCannotBeMadeIsNamed) {
  const Error error = failure_of({"train.samples=8", "checkpoint.interval=8", "checkpoint.folder=/dev/null/here"});
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.subject(), HasSubstr("/dev/null/here"));
}

TEST(Trainer, OptionsOfTheLoaderAreNamedByTheirKeys) {
  const Error batch = failure_of({"train.samples=30000000000", "batch.size=3000000000"});
  EXPECT_EQ(batch.code(), ErrorCode::kUsage);
  EXPECT_EQ(batch.subject(), "command line: batch.size");
  EXPECT_THAT(batch.message(), HasSubstr("1 to 2147483647"));
}

TEST(Trainer, NumbersThatTheLoaderCannotTakeAreRefusedNotCutOff) {
  for (const std::string value : {"5000", "4294967297"}) {
    const Error error = failure_of({"train.samples=8", "loader.workers=" + value});
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_EQ(error.subject(), "loader.workers=" + value + ": loader.workers");
    EXPECT_EQ(error.message(), "expected a whole number, 0 to 4096, found '" + value + "'");
    EXPECT_THAT(failure_of({"train.samples=8", "loader.prefetch_factor=" + value}).message(), HasSubstr("1 to 4096"));
  }
}

class NoPoints final : public testing::PointSource {
 public:
  std::int64_t items() const override { return 0; }
};

class LineWithoutData final : public testing::LineWorkload {
 public:
  const data::Source& source() const override { return none_; }

 private:
  NoPoints none_;
};

TEST(Trainer, DataWithoutASampleIsRefused) {
  const Config config = Config::from_text("workload: line\n", "line.yaml", {"train.samples=8"});
  LineWithoutData workload;
  Events events;
  try {
    Trainer(workload, config, at::kCPU, events, {}).run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.message(), HasSubstr("no data to train with"));
  }
}

TEST(Trainer, ARunWithNothingLeftHasNoLoss) {
  const TemporaryFolder folder;
  const std::vector<std::string> overrides = {"train.samples=8", "checkpoint.interval=8",
                                              "checkpoint.folder=" + folder.path().string()};
  const Summary whole = train_line(overrides).summary;
  EXPECT_TRUE(whole.loss_first && whole.loss_last);
  TrainOptions options;
  options.resume = folder.path();
  const Summary rest = train_line(overrides, options).summary;
  EXPECT_EQ(rest.steps, 0);
  EXPECT_FALSE(rest.loss_first || rest.loss_last);
  EXPECT_EQ(rest.metric, whole.metric);
  EXPECT_THAT(to_text(rest), HasSubstr("nothing was left to train"));
  EXPECT_THAT(to_json(rest), HasSubstr(R"("loss_first":null,"loss_last":null)"));
}

TEST(Checkpoint, OfAnotherSeedIsRefused) {
  const TemporaryFolder folder;
  const std::string where = "checkpoint.folder=" + folder.path().string();
  train_line({"train.samples=8", "checkpoint.interval=8", "seed=4", where});
  TrainOptions options;
  options.resume = folder.path();
  const Error error = failure_of({"train.samples=16", "seed=5", where}, options);
  EXPECT_EQ(error.code(), ErrorCode::kInput);
  EXPECT_THAT(error.message(), HasSubstr("seed 4, not 5"));
  EXPECT_THAT(error.hint(), HasSubstr("seed: 4"));
}

TEST(Trainer, FlushedMemoryChangesNothingElse) {
  const Outcome plain = train_line({"train.samples=16"});
  const Outcome flushed = train_line({"train.samples=16", "memory.flush_interval=2"});
  EXPECT_EQ(flushed.losses, plain.losses);
  EXPECT_EQ(flushed.summary.effective.at("memory.flush_interval"), "2");
}

TEST(Trainer, OneSampleThatFindsNoMemoryEndsTheRun) {
  EXPECT_THROW(train_line({"train.samples=8"}, {}, false, [](LineWorkload& workload) { workload.most_samples = -1; }),
               c10::OutOfMemoryError);
}

TEST(Trainer, ResumingFromNoCheckpointIsRefused) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.resume = folder.path();
  EXPECT_EQ(failure_of({"train.samples=8"}, options).code(), ErrorCode::kInput);
  write_file_atomic(folder.path() / "checkpoint.pt", "not a checkpoint");
  options.resume = folder.path() / "checkpoint.pt";
  EXPECT_EQ(failure_of({"train.samples=8"}, options).code(), ErrorCode::kInput);
}

Error failure_on(std::int64_t item, const std::vector<std::string>& overrides) {
  try {
    train_line(overrides, {}, true, [&](LineWorkload& workload) { workload.points().not_finite = item; });
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "", "no failure"};
}

TEST(NotFinite, StopsAndNamesTheSample) {
  const Error error = failure_on(7, {"train.samples=48", "metrics.interval=5", "loader.workers=1"});
  EXPECT_EQ(error.exit_code(), 2);
  EXPECT_THAT(error.message(), HasSubstr("'x' of item 7 of the training data is not finite"));
}

TEST(NotFinite, InFiniteDataTheStepsItemsAreNamed) {
  const Error error = failure_of({"train.samples=400", "optimizer.name=sgd", "optimizer.lr=1e9"});
  EXPECT_EQ(error.exit_code(), 1);
  EXPECT_THAT(error.message(), HasSubstr("the data is finite: items "));
}

TEST(NotFinite, SkippedStepsChangeNoWeight) {
  for (const char* fused : {"optimizer.fused=true", "optimizer.fused=false"}) {
    const Change damage = [](LineWorkload& workload) { workload.points().not_finite = 7; };
    const Outcome skipped =
        train_line({"train.samples=48", "train.on_nan=skip", "metrics.interval=4", fused}, {}, true, damage);
    EXPECT_EQ(skipped.summary.skipped_steps, 4);  // once per epoch
    EXPECT_TRUE(at::isfinite(skipped.parameters[0]).all().item<bool>());
    const Outcome poisoned = train_line({"train.samples=48", "train.on_nan=go-on", fused}, {}, true, damage);
    EXPECT_FALSE(at::isfinite(poisoned.parameters[0]).all().item<bool>());
  }
}

TEST(Combinations, ThatCannotBeSayWhatToChange) {
  const auto refused = [](const std::string& setting, const std::string& other, const char* hint) {
    const Error error = failure_of({"train.samples=8", other, setting});
    EXPECT_EQ(error.code(), ErrorCode::kInput) << setting;
    EXPECT_THAT(error.subject(), HasSubstr(setting.substr(0, setting.find('='))));
    EXPECT_THAT(error.hint(), HasSubstr(hint));
  };
  refused("precision.amp=fp16", "seed=1", "bf16");
  refused("batch.accumulation=9", "seed=1", "smaller batch.accumulation");
  refused("optimizer.warmup_steps=2", "optimizer.schedule=one-cycle", "cosine");
  refused("ema.decay=1", "seed=1", "0.999");
  refused("cache.features=disk", "workload=superres", "use memory or off");
  refused("cudnn.benchmark=true", "train.deterministic=true", "leave out cudnn.benchmark");
}

}  // namespace
}  // namespace unidle::train
