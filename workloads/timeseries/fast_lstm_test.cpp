#include "workloads/timeseries/fast_lstm.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <vector>

namespace unidle::workloads::timeseries {
namespace {

struct Sizes {
  std::int64_t length;
  std::int64_t samples;
  std::int64_t features;
  std::int64_t width;
};

LstmWeights weights_of(const torch::nn::LSTM& lstm) {
  const std::vector<at::Tensor> all = lstm->all_weights();
  return {all[0], all[1], all[2], all[3]};
}

torch::nn::LSTM lstm_of(const Sizes& sizes) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(sizes.features, sizes.width));
  const at::NoGradGuard no_grad;
  for (const at::Tensor& weights : lstm->parameters()) {
    weights.uniform_(-0.4, 0.4);  // large enough for some units to saturate
  }
  return lstm;
}

/// The outputs, and the gradients of input and weights for a loss with a different weight for each output.
std::vector<at::Tensor> learned(torch::nn::LSTM& lstm, const at::Tensor& days, bool fast) {
  lstm->zero_grad();
  const at::Tensor input = days.detach().clone().requires_grad_(true);
  const at::Tensor outputs = fast ? fast_lstm(input, weights_of(lstm)) : std::get<0>(lstm->forward(input));
  (outputs * at::linspace(-1, 1, outputs.numel()).view(outputs.sizes())).sum().backward();
  std::vector<at::Tensor> all = {outputs.detach(), input.grad()};
  for (const at::Tensor& weights : lstm->parameters()) {
    all.push_back(weights.grad().clone());
  }
  return all;
}

void expect_same_within_rounding(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].sizes(), b[i].sizes());
    const double scale = std::max(1e-3, b[i].abs().max().item<double>());
    EXPECT_LT((a[i] - b[i]).abs().max().item<double>() / scale, 2e-5) << "tensor " << i;
  }
}

class FastLstm : public testing::TestWithParam<Sizes> {};

TEST_P(FastLstm, GivesWhatTorchGives) {
  const Sizes& sizes = GetParam();
  at::manual_seed(3);
  torch::nn::LSTM lstm = lstm_of(sizes);
  const at::Tensor days = at::randn({sizes.length, sizes.samples, sizes.features}) * 2;
  if (!fast_lstm_fits(days, weights_of(lstm))) {
    GTEST_SKIP() << "no AVX2";
  }
  expect_same_within_rounding(learned(lstm, days, true), learned(lstm, days, false));
  const at::NoGradGuard no_grad;
  expect_same_within_rounding({fast_lstm(days, weights_of(lstm))}, {std::get<0>(lstm->forward(days))});
}

// A single day has no day before; with 13 and 7 samples a thread has a partial tile; 300 are several parts of a
// validation.
INSTANTIATE_TEST_SUITE_P(Shapes, FastLstm,
                         testing::Values(Sizes{1, 1, 1, 16}, Sizes{1, 9, 5, 32}, Sizes{6, 13, 3, 16},
                                         Sizes{30, 128, 38, 128}, Sizes{4, 7, 96, 96}, Sizes{3, 300, 4, 16}));

TEST(FastLstmInput, MayBeAViewOfSamplesFirst) {
  torch::nn::LSTM lstm = lstm_of({5, 12, 6, 16});
  const at::Tensor days = at::randn({12, 5, 6}).transpose(0, 1);
  if (!fast_lstm_fits(days, weights_of(lstm))) {
    GTEST_SKIP() << "no AVX2";
  }
  expect_same_within_rounding(learned(lstm, days, true), learned(lstm, days, false));
}

TEST(FastLstmInput, TwoPassesBeforeABackwardPassShareNothing) {
  torch::nn::LSTM lstm = lstm_of({5, 8, 6, 16});
  const at::Tensor days = at::randn({5, 8, 6});
  if (!fast_lstm_fits(days, weights_of(lstm))) {
    GTEST_SKIP() << "no AVX2";
  }
  const auto gradient = [&](const std::vector<at::Tensor>& batches) {
    lstm->zero_grad();
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& batch : batches) {
      loss = loss + fast_lstm(batch, weights_of(lstm)).square().sum();
    }
    loss.backward();
    return weights_of(lstm).recurrent.grad().clone();
  };
  const at::Tensor apart = gradient({days}) + gradient({days * 3});
  expect_same_within_rounding({gradient({days, days * 3})}, {apart});
}

TEST(FastLstmInput, OthersAreTorchs) {
  const torch::nn::LSTM lstm = lstm_of({2, 3, 4, 16});
  const at::Tensor days = at::randn({2, 3, 4});
  EXPECT_FALSE(fast_lstm_fits(days.to(at::kDouble), weights_of(lstm)));
  EXPECT_FALSE(fast_lstm_fits(days, weights_of(lstm_of({2, 3, 4, 24}))));
  EXPECT_FALSE(fast_lstm_fits(at::empty({2, 0, 4}), weights_of(lstm)));
  at::autocast::set_autocast_enabled(at::kCPU, true);
  EXPECT_FALSE(fast_lstm_fits(days, weights_of(lstm)));
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace
}  // namespace unidle::workloads::timeseries
