#include "unidle/train/step/step_graphs.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <map>
#include <memory>
#include <sstream>

#include "unidle/train/device.h"
#include "unidle/train/testing/fake_graph_capture.h"
#include "unidle/train/testing/line_workload.h"
#include "unidle/train/trainer.h"

namespace unidle::train {
namespace {

using testing::FakeGraphCapture;
using ::testing::HasSubstr;
using testing::LineWorkload;

/// A model with one weight in fixed memory: each step moves it a tenth of the way to the batch's mean.
class OneWeight {
 public:
  StepGraphs::Work work() {
    return {.step =
                [this](const StepFields& fields) {
                  ++steps;
                  const at::Tensor gap = fields.at(0).at(0).mean() - weight_;
                  weight_.add_(gap, 0.1);
                  count_.add_(1);
                  return gap.abs();
                },
            .drop_gradients = [this] { ++drops; },
            .weights = [this] { return std::vector<at::Tensor>{weight_}; },
            .others = [this] { return std::vector<at::Tensor>{count_}; }};
  }
  double weight() const { return weight_.item<double>(); }
  double count() const { return count_.item<double>(); }
  at::Tensor& tensor() { return weight_; }

  int steps = 0;
  int drops = 0;

 private:
  at::Tensor weight_ = at::zeros({}, at::kDouble);
  at::Tensor count_ = at::zeros({}, at::kDouble);
};

/// Batches of each size alternate between the same two buffers.
StepFields batch(std::int64_t size, double value) {
  static std::map<std::int64_t, std::vector<at::Tensor>> places;
  static std::map<std::int64_t, std::size_t> turns;
  std::vector<at::Tensor>& two = places[size];
  while (two.size() < 2) {
    two.push_back(at::empty({size}, at::kDouble));
  }
  return {{two[turns[size]++ % 2].fill_(value)}};
}

TEST(StepGraphs, StepsAreTheSameWhetherReplayedOrNot) {
  OneWeight plain;
  OneWeight captured;
  FakeGraphCapture capture;
  StepGraphs graphs(&capture, "", at::kCPU, captured.work());
  const StepGraphs::Work work = plain.work();
  for (int i = 0; i < 20; ++i) {
    const double expected = work.step(batch(4, i)).item<double>();
    EXPECT_EQ(graphs.run(batch(4, i)).item<double>(), expected);
    EXPECT_EQ(captured.weight(), plain.weight());
    EXPECT_EQ(captured.count(), i + 1);
  }
  EXPECT_EQ(graphs.replays(), 17);
  EXPECT_EQ(capture.captures, 1);
}

TEST(StepGraphs, LossesOutliveTheNextReplay) {
  OneWeight model;
  FakeGraphCapture capture;
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  std::vector<at::Tensor> losses;
  for (int i = 0; i < 10; ++i) {
    losses.push_back(graphs.run(batch(4, 100)));
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_NEAR(losses[static_cast<std::size_t>(i)].item<double>(), 100 * std::pow(0.9, i), 1e-9);
  }
}

/// Collects what is logged while it lives.
class Logged {
 public:
  Logged() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_)));
  }
  ~Logged() { spdlog::set_default_logger(before_); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST(StepGraphs, EachShapeHasAGraphUpToABound) {
  const Logged logged;
  OneWeight model;
  FakeGraphCapture capture;
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  for (int round = 0; round < 6; ++round) {
    for (std::int64_t size = 1; size <= 20; ++size) {
      graphs.run(batch(size, 1));
    }
  }
  EXPECT_EQ(capture.captures, 2 * 16);
  EXPECT_EQ(graphs.replays(), 16 * 3);
  EXPECT_EQ(model.count(), 120);
  const std::string warning = "more than 16 shapes";
  EXPECT_THAT(logged.text(), HasSubstr(warning));
  EXPECT_EQ(logged.text().find(warning), logged.text().rfind(warning)) << "said more than once";
  graphs.drop_graphs();
  graphs.run(batch(1, 1));
  EXPECT_EQ(graphs.replays(), 16 * 3) << "a graph that was dropped has to be made anew";
}

TEST(StepGraphs, WhatCannotBeCapturedIsDoneAsItIs) {
  OneWeight model;
  FakeGraphCapture capture;
  capture.refuses = true;
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  for (int i = 0; i < 10; ++i) {
    graphs.run(batch(4, 1));
  }
  EXPECT_FALSE(graphs.on());
  EXPECT_EQ(graphs.reason(), "it cannot be captured: operation not permitted when stream is capturing");
  EXPECT_EQ(capture.captures, 1);
  EXPECT_EQ(model.count(), 10);
  EXPECT_EQ(model.drops, 1);
}

TEST(StepGraphs, AGraphThatDoesAnotherThingIsNotTrusted) {
  OneWeight model;
  OneWeight plain;
  const StepGraphs::Work work = plain.work();
  FakeGraphCapture capture;
  capture.after_replay = [&] { model.tensor().add_(0.01); };
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(graphs.run(batch(4, 1)).item<double>(), work.step(batch(4, 1)).item<double>());
    EXPECT_EQ(model.weight(), plain.weight());
  }
  EXPECT_THAT(graphs.reason(), HasSubstr("its weights are 0.01 from those of the same step"));
  EXPECT_EQ(model.count(), 10);
}

TEST(StepGraphs, AReplayThatBreaksLeavesTheStepAsItIs) {
  OneWeight model;
  OneWeight plain;
  const StepGraphs::Work work = plain.work();
  FakeGraphCapture capture;
  capture.after_replay = [] { throw std::runtime_error("out of memory\nand a second line"); };
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(graphs.run(batch(4, i)).item<double>(), work.step(batch(4, i)).item<double>());
    EXPECT_EQ(model.weight(), plain.weight());
  }
  EXPECT_EQ(graphs.reason(), "it cannot be replayed: out of memory");
  EXPECT_EQ(model.count(), 10);
}

TEST(StepGraphs, WithoutMemoryToCompareStepsAreDoneAsTheyAre) {
  OneWeight model;
  FakeGraphCapture capture;
  StepGraphs::Work work = model.work();
  work.others = []() -> std::vector<at::Tensor> { throw std::runtime_error("out of memory\nand a second line"); };
  StepGraphs graphs(&capture, "", at::kCPU, work);
  for (int i = 0; i < 10; ++i) {
    graphs.run(batch(4, 1));
  }
  EXPECT_EQ(graphs.reason(), "it cannot be compared: out of memory");
  EXPECT_EQ(model.count(), 10);
  EXPECT_EQ(graphs.replays(), 0);
}

TEST(StepGraphs, StepsThatChangeNothingProveNothing) {
  OneWeight model;
  FakeGraphCapture capture;
  capture.after_replay = [&] {
    if (model.weight() != 0) {
      model.tensor().add_(5);
    }
  };
  StepGraphs graphs(&capture, "", at::kCPU, model.work());
  for (int i = 0; i < 4; ++i) {
    graphs.run(batch(4, 0));  // the weight is there already
  }
  EXPECT_TRUE(graphs.on());
  EXPECT_EQ(capture.captures, 1);
  EXPECT_FALSE(graphs.hold_memory());
  for (int i = 0; i < 6; ++i) {
    graphs.run(batch(4, 1));
    EXPECT_EQ(capture.captures, 1) << "it waits longer than before";
  }
  graphs.run(batch(4, 1));
  EXPECT_EQ(capture.captures, 2);
  EXPECT_FALSE(graphs.on());
}

/// Has memory for one step: a normal one, or a captured one.
class OneStepOfMemory {
 public:
  explicit OneStepOfMemory(OneWeight& model) : work(model.work()) {
    capture.before_replay = [this] { replaying_ = true; };
    capture.after_replay = [this] { replaying_ = false; };
    work.step = [this, step = work.step](const StepFields& fields) {
      TORCH_CHECK_WITH(OutOfMemoryError, replaying_ || capture.alive == 0, "out of memory");
      return step(fields);
    };
  }
  FakeGraphCapture capture;
  StepGraphs::Work work;

 private:
  bool replaying_ = false;
};

TEST(StepGraphs, AStepThatTakesMostOfTheMemoryIsCaptured) {
  OneWeight model;
  OneStepOfMemory memory(model);
  StepGraphs graphs(&memory.capture, "", at::kCPU, memory.work);
  for (int i = 0; i < 10; ++i) {
    graphs.run(batch(4, i));
  }
  EXPECT_EQ(graphs.reason(), "");
  EXPECT_EQ(graphs.replays(), 7);
  EXPECT_EQ(model.count(), 10);
}

TEST(StepGraphs, GraphsCanBeGivenUpForAStepOfAnotherShape) {
  OneWeight model;
  OneStepOfMemory memory(model);
  StepGraphs graphs(&memory.capture, "", at::kCPU, memory.work);
  for (int i = 0; i < 5; ++i) {
    graphs.run(batch(4, i));
  }
  EXPECT_TRUE(graphs.hold_memory());
  EXPECT_THROW(graphs.run(batch(5, 1)), c10::OutOfMemoryError);
  graphs.give_up("no memory");
  EXPECT_EQ(memory.capture.alive, 0);
  graphs.run(batch(5, 1));
  EXPECT_EQ(model.count(), 6);
}

struct Trained {
  Summary summary;
  std::vector<at::Tensor> parameters;
};

Trained train_with_graphs(std::vector<std::string> overrides, GraphCapture* capture, bool noisy = true) {
  overrides.insert(overrides.begin(), {"cpu.threads=1", "optimizer.lr=0.01", "device=cpu", "train.samples=80",
                                       "compile.mode=graph", "optimizer.fused=true"});
  const Config config = Config::from_text("workload: line\n", "line.yaml", overrides);
  configure_torch(config);
  LineWorkload workload(true);
  workload.noise = noisy ? workload.noise : 0;  // drawn once per micro-batch
  Events events;
  TrainOptions options;
  options.capture = capture;
  Trainer trainer(workload, config, at::kCPU, events, options);
  Trained trained{trainer.run(), {}};
  for (const at::Tensor& parameter : workload.model().parameters()) {
    trained.parameters.push_back(parameter.detach().clone());
  }
  return trained;
}

/// All settings with state of their own.
const std::vector<std::vector<std::string>> kRuns = {
    {"optimizer.warmup_steps=3", "grad.clip_norm=0.5", "loader.workers=2"},
    {"optimizer.schedule=cosine", "ema.decay=0.9", "train.on_nan=skip", "optimizer.zero_to_none=false"},
    {"optimizer.name=sgd", "optimizer.schedule=one-cycle", "batch.size=2", "batch.accumulation=2"},
    {"data.on_device=true", "optimizer.schedule=cosine"},
};

TEST(StepGraphs, ARunLearnsTheSame) {
  for (const std::vector<std::string>& run : kRuns) {
    const Trained plain = train_with_graphs(run, nullptr);
    EXPECT_EQ(plain.summary.effective.at("compile.mode"), "off");
    FakeGraphCapture capture;
    const Trained replayed = train_with_graphs(run, &capture);
    EXPECT_EQ(replayed.summary.effective.at("compile.mode"), "graph") << run[0];
    EXPECT_EQ(capture.captures, 2);  // one for each place that batches lie in
    // one per buffer of the batches
    EXPECT_NEAR(replayed.summary.loss_last.value(), plain.summary.loss_last.value(),
                1e-5 * std::abs(plain.summary.loss_last.value()));
    for (std::size_t i = 0; i < plain.parameters.size(); ++i) {
      EXPECT_TRUE(at::allclose(replayed.parameters[i], plain.parameters[i], 1e-5, 1e-6)) << run[0];
    }
  }
}

TEST(StepGraphs, ARunWhoseStepCannotBeCapturedLearnsTheSame) {
  FakeGraphCapture refusing;
  refusing.refuses = true;
  const Trained replayed = train_with_graphs(kRuns[1], &refusing);
  const Trained plain = train_with_graphs(kRuns[1], nullptr);
  EXPECT_EQ(replayed.summary.effective.at("compile.mode"), "off");
  EXPECT_NEAR(replayed.summary.loss_last.value(), plain.summary.loss_last.value(),
              1e-5 * std::abs(plain.summary.loss_last.value()));
}

TEST(StepGraphs, ARunThatLacksMemoryGivesUpGraphsBeforeItsBatch) {
  FakeGraphCapture capture;
  int replays = 0;
  capture.before_replay = [&] { TORCH_CHECK_WITH(OutOfMemoryError, ++replays != 10, "out of memory"); };
  const Trained replayed = train_with_graphs({"batch.size=2"}, &capture, false);
  const Trained plain = train_with_graphs({"batch.size=2"}, nullptr, false);
  EXPECT_EQ(replayed.summary.effective.at("batch.size"), "2");
  EXPECT_EQ(replayed.summary.effective.at("compile.mode"), "off");
  EXPECT_EQ(capture.captures, 2);
  EXPECT_EQ(capture.alive, 0);
  for (std::size_t i = 0; i < plain.parameters.size(); ++i) {
    EXPECT_TRUE(at::allclose(replayed.parameters[i], plain.parameters[i], 1e-5, 1e-6));
  }
}

TEST(StepGraphs, AnUpdateThatReadsItsRateOnTheHostIsNotCaptured) {
  FakeGraphCapture capture;
  EXPECT_EQ(train_with_graphs({"optimizer.fused=false"}, &capture).summary.effective.at("compile.mode"), "off");
  EXPECT_EQ(capture.captures, 0);
}

}  // namespace
}  // namespace unidle::train
