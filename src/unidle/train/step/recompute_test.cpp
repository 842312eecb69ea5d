#include "unidle/train/step/recompute.h"

#include <gtest/gtest.h>

#include <vector>

#include "unidle/train/step/precision.h"

namespace unidle::train {
namespace {

/// Blocks with dropout, each of which may be recomputed in the backward pass.
class Blocks {
 public:
  Blocks() {
    at::manual_seed(3);
    for (int i = 0; i < kBlocks; ++i) {
      weights_.push_back((at::randn({kWidth, kWidth}) / 4).requires_grad_(true));
    }
    input_ = at::randn({kRows, kWidth}).requires_grad_(true);
  }

  /// The results of one pass: the loss, all gradients, and the next random number.
  std::vector<at::Tensor> learn(bool recomputed, at::ScalarType dtype) {
    at::manual_seed(7);
    at::Tensor loss;
    {
      const AutocastGuard autocast(at::kCPU, dtype);
      at::Tensor hidden = input_ * 1;
      for (const at::Tensor& weight : weights_) {
        const auto block = [this, weight](const std::vector<at::Tensor>& x) {
          ++calls;
          dtypes.push_back(at::linear(x[0], weight).scalar_type());
          return x[0] + at::dropout(at::linear(x[0] * x[1], weight).relu(), 0.5, true).to(at::kFloat);
        };
        const std::vector<at::Tensor> inputs = {hidden, input_ + 1};  // each has a graph
        hidden = recomputed ? recompute(block, inputs) : block(inputs);
      }
      loss = hidden.square().mean();
    }
    loss.backward();
    std::vector<at::Tensor> all = {loss.detach(), input_.grad()};
    for (at::Tensor& weight : weights_) {
      all.push_back(weight.grad());
      weight.mutable_grad().reset();
    }
    input_.mutable_grad().reset();
    all.push_back(at::rand({4}));
    return all;
  }

  static constexpr int kBlocks = 3;
  static constexpr int kWidth = 16;
  static constexpr int kRows = 8;
  int calls = 0;
  std::vector<at::ScalarType> dtypes;  // of the matrix products in each call

 private:
  std::vector<at::Tensor> weights_;
  at::Tensor input_;
};

TEST(Recompute, GivesTheSameGradientsToTheBitWithDropout) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Blocks blocks;
    const std::vector<at::Tensor> plain = blocks.learn(false, dtype);
    EXPECT_EQ(blocks.calls, Blocks::kBlocks);
    const std::vector<at::Tensor> again = blocks.learn(true, dtype);
    EXPECT_EQ(blocks.calls, 3 * Blocks::kBlocks);  // the second pass computes each block twice
    ASSERT_EQ(plain.size(), again.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(at::equal(plain[i], again[i])) << "tensor " << i << ", " << dtype;
    }
    for (const at::ScalarType used : blocks.dtypes) {
      EXPECT_EQ(used, dtype);  // in the backward pass too, which starts outside of autocast
    }
  }
}

TEST(Recompute, DrawsTheSameRandomNumbersAgain) {
  at::manual_seed(3);
  const at::Tensor weight = at::ones({50}).requires_grad_(true);
  at::Tensor first;
  int calls = 0;
  const auto body = [&](const std::vector<at::Tensor>& x) {
    const at::Tensor y = at::dropout(x[0], 0.5, true);
    first = calls++ == 0 ? y.detach().clone() : first;
    return y;
  };
  const at::Tensor out = recompute(body, {weight * 1});
  const at::Tensor drawn_between = at::rand({3});
  out.sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(at::equal(weight.grad(), first));  // dropped elements have no gradient
  // Later random numbers are the same as without the second pass.
  const at::Tensor after = at::rand({3});
  at::manual_seed(3);
  at::dropout(weight, 0.5, true);
  EXPECT_TRUE(at::equal(drawn_between, at::rand({3})));
  EXPECT_TRUE(at::equal(after, at::rand({3})));
}

}  // namespace
}  // namespace unidle::train
