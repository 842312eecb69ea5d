#include "unidle/train/fuse/fused_loss.h"

#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/process.h"
#include "unidle/train/device.h"
#include "unidle/train/testing/line_workload.h"

namespace unidle::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A convolution with batch statistics, noise from torch's generator, and a parameter that the loss does not use.
class SmallNet : public Workload {
 public:
  SmallNet() {
    at::manual_seed(7);
    model_ = std::make_shared<torch::nn::Module>();
    conv_ = model_->register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    norm_ = model_->register_module("norm", torch::nn::BatchNorm2d(8));
    model_->register_parameter("idle", at::ones({3}));
    last_ = model_->register_module("last", torch::nn::Linear(8, 2));
  }
  const data::Source& source() const override { return source_; }
  std::vector<FieldUse> field_uses() const override { return {FieldUse::kRaw, FieldUse::kRaw}; }
  torch::nn::Module& model() override { return *model_; }
  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    const at::Tensor seen = norm_->forward(conv_->forward(fields[0])).relu().mean({2, 3});
    const at::Tensor told = last_->forward(seen + 0.1 * at::randn({1, 8})).to(at::kFloat);
    return at::mse_loss(told, fields[1]);
  }
  Effective effective() const override { return {}; }

 private:
  testing::PointSource source_;
  std::shared_ptr<torch::nn::Module> model_;
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  torch::nn::Linear last_{nullptr};
};

std::vector<at::Tensor> some_fields(std::int64_t samples = 4) {
  return {at::rand({samples, 3, 8, 8}), at::rand({samples, 2})};
}

/// A separate home folder, and the Python that it names.
class FusedLossTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    ::setenv("UNIDLE_HOME", home_.path().c_str(), 1);
    ::unsetenv("UNIDLE_PYTHON");
  }
  void TearDown() override {
    ::unsetenv("UNIDLE_HOME");
    ::unsetenv("UNIDLE_PYTHON");
  }
  void use_python(const std::string& script) {
    const fs::path path = home_.path() / "python";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    fs::permissions(path, fs::perms::owner_all);
    ::setenv("UNIDLE_PYTHON", path.c_str(), 1);
  }
  /// Runs `compile` in place of the compiler, with its folder as $2.
  void use_compiler(const std::string& compile) {
    use_python("if [ \"$1\" = -c ]; then echo " TORCH_VERSION "+cpu; exit; fi\n" + compile + "\n");
  }
  std::vector<fs::path> packages() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(home_.path() / "fused")) {
      found.push_back(entry.path());
    }
    return found;
  }
  /// Why the second micro-batch of a shape was not fused.
  std::string reason() {
    SmallNet net;
    const Precision precision("off", at::kCPU);
    FusedLoss fused(net, precision, at::kCPU, "", nullptr);
    const auto fields = some_fields();
    EXPECT_FALSE(fused.learn(fields, 1).defined());
    EXPECT_TRUE(fused.on());
    const auto buffers_before = net.model().buffers()[0].clone();
    EXPECT_FALSE(fused.learn(fields, 1).defined());
    EXPECT_FALSE(fused.on());
    EXPECT_TRUE(at::equal(net.model().buffers()[0], buffers_before)) << "the attempt left something behind";
    return fused.reason();
  }

  TemporaryFolder home_;
};

bool can_compile() {
  try {
    matching_python();
    Command command;
    command.argv = {"g++", "--version"};
    return run_to_end(command).status.ok();
  } catch (const Error&) {
    return false;
  }
}

/// Trains two identical models on some micro-batches, one fused and one not: loss, gradients and buffers agree.
void expect_alike(const std::string& amp, double tolerance) {
  SmallNet plain;
  SmallNet other;
  const Precision precision(amp, at::kCPU);
  FusedLoss fused(other, precision, at::kCPU, "", nullptr);
  const auto learn_plain = [&precision](SmallNet& net, const std::vector<at::Tensor>& fields, double share) {
    at::Tensor loss;
    {
      const AutocastGuard autocast = precision.autocast();
      loss = net.loss(fields) * share;
    }
    loss.backward();
    return loss.detach();
  };
  for (int i = 0; i < 5; ++i) {
    at::manual_seed(static_cast<std::uint64_t>(i));
    const auto fields = some_fields();
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    const at::Tensor random = generator.get_state();
    const at::Tensor expected = learn_plain(plain, fields, 0.5);
    generator.set_state(random);
    at::Tensor loss = fused.learn(fields, 0.5);
    ASSERT_EQ(loss.defined(), i > 1) << fused.reason();
    loss = loss.defined() ? loss : learn_plain(other, fields, 0.5);
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), tolerance * expected.item<double>());
    const auto of_plain = plain.model().named_parameters();
    const auto of_other = other.model().named_parameters();
    // The norm over all gradients: that of a bias before batch statistics is only rounding.
    double all = 0;
    for (const auto& item : of_plain) {
      all += item.value().grad().defined() ? item.value().grad().norm().item<double>() : 0;
    }
    for (const auto& item : of_plain) {  // they accumulate over the micro-batches
      const at::Tensor gradient = item.value().grad();
      const at::Tensor* found = &of_other[item.key()].grad();
      ASSERT_EQ(gradient.defined(), found->defined()) << item.key();
      if (gradient.defined()) {
        EXPECT_LE((gradient - *found).norm().item<double>(), tolerance * all) << item.key();
        EXPECT_EQ(found->strides(), item.value().strides()) << item.key();
      }
    }
    for (std::size_t buffer = 0; buffer < plain.model().buffers().size(); ++buffer) {
      EXPECT_TRUE(at::allclose(plain.model().buffers()[buffer], other.model().buffers()[buffer], 10 * tolerance, 1e-6));
    }
  }
  EXPECT_EQ(fused.runs(), 3);
}

TEST_F(FusedLossTest, GivesTheLossAndTheGradientsOfTheWorkload) {
  if (!can_compile()) {
    GTEST_SKIP() << "no Python with this torch, or no g++";
  }
  expect_alike("off", 1e-4);
  ASSERT_EQ(packages().size(), 1U);
  const fs::path kept = packages().front();

  // Later runs need no compiler.
  use_compiler("exit 1");
  expect_alike("off", 1e-4);

  // A damaged package is rebuilt.
  const fs::path whole = home_.path() / "whole.pt2";
  fs::copy_file(kept, whole);
  std::ofstream(kept, std::ios::trunc) << "damaged";
  use_compiler("cp " + whole.string() + " \"$2/loss.pt2\"");
  expect_alike("off", 1e-4);
  EXPECT_EQ(read_file(kept), read_file(whole));

  // An intact package of another loss runs, and is detected.
  fs::remove(kept);
  SmallNet net;
  for (at::Tensor& parameter : net.model().parameters()) {
    parameter.requires_grad_(parameter.numel() != 3);  // one parameter fewer, at the beginning
  }
  const Precision precision("off", at::kCPU);
  FusedLoss fused(net, precision, at::kCPU, "", nullptr);
  const auto fields = some_fields();
  fused.learn(fields, 1);
  fused.learn(fields, 1);
  EXPECT_FALSE(fused.learn(fields, 1).defined());
  EXPECT_FALSE(fused.on());
}

/// A number that the host reads from the data becomes a constant of the trace.
class ReadsItsData : public SmallNet {
 public:
  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    return SmallNet::loss(fields) / fields[1].sum().item<double>();
  }
};

TEST_F(FusedLossTest, WhatATraceHasFrozenIsFoundOut) {
  if (!can_compile()) {
    GTEST_SKIP() << "no Python with this torch, or no g++";
  }
  ReadsItsData net;
  const Precision precision("off", at::kCPU);
  FusedLoss fused(net, precision, at::kCPU, "", nullptr);
  for (double scale = 1; scale <= 3; ++scale) {
    std::vector<at::Tensor> fields = some_fields();
    fields[1] = fields[1] * scale;
    EXPECT_FALSE(fused.learn(fields, 1).defined());
  }
  EXPECT_FALSE(fused.on());
  EXPECT_THAT(fused.reason(), HasSubstr("its loss is"));
}

TEST_F(FusedLossTest, GivesThemInBf16) {
  if (!can_compile()) {
    GTEST_SKIP() << "no Python with this torch, or no g++";
  }
  expect_alike("bf16", 0.03);
}

TEST_F(FusedLossTest, TellsWhyNothingWasCompiled) {
  ::setenv("UNIDLE_PYTHON", "/nowhere/python", 1);
  EXPECT_THAT(reason(), HasSubstr("/nowhere/python has no torch"));
  use_python("echo 1.0.0+cu1");
  EXPECT_THAT(reason(), HasSubstr("has torch 1.0.0+cu1"));
  use_compiler("echo 'CppCompileError: no g++ here' >\"$2/failure.txt\"; exit 1");
  EXPECT_EQ(reason(), "the compiler: CppCompileError: no g++ here");
  use_compiler("exit 7");
  EXPECT_EQ(reason(), "the compiler: ended with 7");
  use_compiler("echo nothing >\"$2/loss.pt2\"");
  EXPECT_NE(reason(), "");
}

TEST_F(FusedLossTest, ALossThatCannotBeTracedIsDoneAsItIs) {
  class Untraceable : public SmallNet {
   public:
    at::Tensor loss(const std::vector<at::Tensor>& fields) override {
      if (tracing_a_loss()) {
        throw std::runtime_error("not of torch's operations\nand a second line");
      }
      return SmallNet::loss(fields);
    }
  };
  Untraceable net;
  const Precision precision("off", at::kCPU);
  FusedLoss fused(net, precision, at::kCPU, "", nullptr);
  const auto fields = some_fields();
  fused.learn(fields, 1);
  EXPECT_FALSE(fused.learn(fields, 1).defined());
  EXPECT_EQ(fused.reason(), "not of torch's operations");
  EXPECT_FALSE(tracing_a_loss()) << "tracing goes on";
}

TEST_F(FusedLossTest, AStopEndsTheCompiler) {
  use_compiler("touch \"$2/begun\"; sleep 600");
  const std::atomic<bool> stop = true;
  SmallNet net;
  const Precision precision("off", at::kCPU);
  FusedLoss fused(net, precision, at::kCPU, "", &stop);
  const auto fields = some_fields();
  fused.learn(fields, 1);
  EXPECT_FALSE(fused.learn(fields, 1).defined());
  EXPECT_EQ(fused.reason(), "the compiler: was stopped");
}

TEST_F(FusedLossTest, OnlyAFewShapesArePrepared) {
  use_compiler("exit 7");
  SmallNet net;
  const Precision precision("off", at::kCPU);
  FusedLoss fused(net, precision, at::kCPU, "", nullptr);
  for (std::int64_t samples = 1; samples <= 6; ++samples) {
    EXPECT_FALSE(fused.learn(some_fields(samples), 1).defined());
  }
  EXPECT_FALSE(fused.learn(some_fields(6), 1).defined());
  EXPECT_TRUE(fused.on()) << "a shape beyond the few was compiled: " << fused.reason();
}

}  // namespace
}  // namespace unidle::train
