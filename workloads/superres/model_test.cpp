#include "workloads/superres/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workloads/superres/fast_block.h"
#include "workloads/superres/kernels.h"

namespace unidle::workloads::superres {
namespace {

std::int64_t count(std::int64_t width, std::int64_t depth) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : Model({.width = width, .depth = depth}).parameters()) {
    count += parameter.numel();
  }
  return count;
}

TEST(Model, HasThePublishedParameterCounts) {
  EXPECT_EQ(count(32, 4), 60'526);
  EXPECT_EQ(count(96, 8), 805'490);
  EXPECT_EQ(count(128, 12), 1'963'318);
}

TEST(Model, EnlargesFourTimes) {
  const at::NoGradGuard no_grad;
  const at::Tensor high = Model({.width = 16, .depth = 1}).forward(at::rand({2, 3, 9, 13}));
  EXPECT_EQ(high.sizes(), at::IntArrayRef({2, 3, 36, 52}));
}

/// Runs one forward and backward pass; returns the loss and all gradients.
std::vector<at::Tensor> run(Model& model, const at::Tensor& low) {
  model.zero_grad();
  const at::Tensor loss = model.forward(low).square().mean();
  loss.backward();
  std::vector<at::Tensor> all = {loss.detach()};
  for (const at::Tensor& parameter : model.parameters()) {
    all.push_back(parameter.grad().clone());
  }
  return all;
}

void copy_parameters(const Model& from, Model& to) {
  const at::NoGradGuard no_grad;
  const auto source = from.parameters();
  const auto target = to.parameters();
  for (std::size_t i = 0; i < source.size(); ++i) {
    target[i].copy_(source[i]);
  }
}

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double scale = std::max(1e-6, a[i].abs().max().item<double>());
    EXPECT_LT((a[i] - b[i]).abs().max().item<double>() / scale, tolerance) << "tensor " << i;
  }
}

/// Changes the weights, so that biases, gamma and LayerNorm's affine part matter.
void disturb(Model& model) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters()) {
    parameter.add_(at::randn_like(parameter), 0.1);
  }
}

class Layouts : public testing::TestWithParam<std::vector<std::int64_t>> {};

// Both layouts compute the same; on a CPU, channels-last compares the fused block with torch's operations.
TEST_P(Layouts, AgreeInLossAndGradients) {
  at::manual_seed(3);
  Model planes({.width = 16, .depth = 2});
  disturb(planes);
  Model last({.width = 16, .depth = 2, .channels_last = true});
  copy_parameters(planes, last);
  const at::Tensor low = at::rand(GetParam());
  expect_close(run(planes, low), run(last, low.contiguous(at::MemoryFormat::ChannelsLast)), 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Layouts,
                         testing::Values(std::vector<std::int64_t>{2, 3, 16, 16},
                                         std::vector<std::int64_t>{1, 3, 5, 11},
                                         std::vector<std::int64_t>{3, 3, 2, 3}));

TEST(Model, BiasesBeforeBatchNormalisationHaveNoGradient) {
  Model model({.width = 16, .depth = 1, .channels_last = true});
  const std::vector<at::Tensor> all = run(model, at::rand({2, 3, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast));
  for (const std::size_t tensor : {2, 4}) {  // biases of the depth-wise and the point-wise convolution
    EXPECT_EQ(all[tensor].abs().max().item<double>(), 0);
  }
}

TEST(Model, RecomputedBlocksGiveTheSameGradients) {
  for (const bool channels_last : {false, true}) {
    at::manual_seed(5);
    Model plain({.width = 16, .depth = 2, .channels_last = channels_last});
    Model recomputed({.width = 16, .depth = 2, .channels_last = channels_last, .recompute_blocks = true});
    copy_parameters(plain, recomputed);
    const auto format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const at::Tensor low = at::rand({2, 3, 8, 8}).contiguous(format);
    expect_close(run(plain, low), run(recomputed, low), 1e-7);
  }
}

// The stored slope must be the derivative of the forward function, also far from 0.
TEST(FastBlock, GeluMatchesTorchOverItsWholeRange) {
  if (kernels() == nullptr) {
    GTEST_SKIP() << "no AVX2";
  }
  const at::Tensor x = at::cat({at::linspace(-12, 12, 4096), at::full({8}, -100.0), at::full({8}, 100.0)});
  const at::Tensor zeros = at::zeros({8});
  at::Tensor values = x.clone();
  at::Tensor slope = at::empty_like(x);
  kernels()->gelu(8, zeros.const_data_ptr<float>(), values.mutable_data_ptr<float>(), slope.mutable_data_ptr<float>(),
                  0, x.numel() / 8);
  const at::Tensor leaf = x.to(at::kDouble).requires_grad_(true);
  const at::Tensor exact = at::gelu(leaf);
  exact.sum().backward();
  EXPECT_LT((values - exact.detach()).abs().max().item<double>(), 1e-6);
  EXPECT_LT((slope - leaf.grad()).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace unidle::workloads::superres
