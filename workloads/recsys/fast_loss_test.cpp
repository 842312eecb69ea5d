#include "workloads/recsys/fast_loss.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unidle/train/step/precision.h"
#include "workloads/recsys/layer_kernels.h"
#include "workloads/recsys/model.h"

namespace unidle::workloads::recsys {
namespace {

constexpr std::int64_t kFeatures = 157;
constexpr std::int64_t kWidth = 64;

struct Batch {
  at::Tensor features;
  at::Tensor targets;
};
Batch random_batch(std::int64_t rows, std::int64_t features = kFeatures) {
  return {at::randn({rows, features}), at::stack({at::rand({rows}) * 1e5, at::rand({rows}).gt(0.4).to(at::kFloat)}, 1)};
}

/// Returns the gradients of the last backward passes, and clears them.
std::vector<at::Tensor> take_gradients(Model& model) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model.parameters()) {
    all.push_back(parameter.grad().clone());
  }
  model.zero_grad();
  return all;
}

std::vector<at::Tensor> gradients_in_torch(Model& model, const Batch& batch) {
  loss_of(model.forward(batch.features), batch.targets).backward();
  return take_gradients(model);
}

void expect_near(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& theirs, double factor = 1,
                 double tolerance = 2e-5) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double scale = std::max(1e-6, theirs[i].abs().max().item<double>());
    EXPECT_LT((ours[i] - theirs[i] * factor).abs().max().item<double>() / scale, tolerance) << "parameter " << i;
  }
}

class FastLossTest : public testing::Test {
 protected:
  void SetUp() override {
    if (layer_kernels() == nullptr) {
      GTEST_SKIP() << "no AVX2";
    }
    at::manual_seed(7);
  }
  void TearDown() override { at::set_num_threads(threads_); }

 private:
  int threads_ = at::get_num_threads();
};

// Widths with whole and half panels, features that fill vectors and not; batches smaller than one chunk, of one chunk,
// and of several with a remainder; one thread and several.
TEST_F(FastLossTest, IsThatOfTheModelInValueAndGradients) {
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    for (const auto& [features, width] : {std::pair{kFeatures, 128}, std::pair{std::int64_t{16}, 64}}) {
      Model model(features, width);
      FastLoss fast(model.parameters());
      for (const std::int64_t rows : {1, 7, 64, 65, 200, 1000}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, width " << width << ", threads " << threads);
        const Batch batch = random_batch(rows, features);
        ASSERT_TRUE(fast.fits(batch.features, batch.targets));
        const at::Tensor loss = fast.learn(batch.features, batch.targets, 1);
        const std::vector<at::Tensor> ours = take_gradients(model);
        const double plain = loss_of(model.forward(batch.features), batch.targets).item<double>();
        EXPECT_NEAR(loss.item<double>(), plain, 1e-6 * plain);
        expect_near(ours, gradients_in_torch(model, batch));
      }
    }
  }
}

TEST_F(FastLossTest, SurvivesLogitsFarOut) {
  Model model(kFeatures, kWidth);
  FastLoss fast(model.parameters());
  Batch batch = random_batch(40);
  batch.features *= 3000;
  const at::Tensor loss = fast.learn(batch.features, batch.targets, 1);
  const std::vector<at::Tensor> ours = take_gradients(model);
  const double plain = loss_of(model.forward(batch.features), batch.targets).item<double>();
  EXPECT_GT(model.forward(batch.features).click.abs().max().item<double>(), 100);
  EXPECT_NEAR(loss.item<double>(), plain, 1e-6 * plain);
  expect_near(ours, gradients_in_torch(model, batch), 1, 1e-3);  // cancellation near logit 0
}

// As in gradient accumulation; before the first batch gradients are undefined or zero.
TEST_F(FastLossTest, AddsItsShareToTheGradientsThatAreThere) {
  Model model(kFeatures, kWidth);
  FastLoss fast(model.parameters());
  const Batch one = random_batch(64);
  const Batch two = random_batch(30);
  for (const bool zeros : {false, true}) {
    for (const at::Tensor& parameter : model.parameters()) {
      parameter.mutable_grad() = zeros ? at::zeros_like(parameter) : at::Tensor();
    }
    const at::Tensor loss = fast.learn(one.features, one.targets, 0.5);
    EXPECT_FALSE(loss.requires_grad());
    fast.learn(two.features, two.targets, 0.25);
    const std::vector<at::Tensor> ours = take_gradients(model);
    (loss_of(model.forward(one.features), one.targets) / 2 + loss_of(model.forward(two.features), two.targets) / 4)
        .backward();
    expect_near(ours, take_gradients(model));
  }
}

TEST_F(FastLossTest, LeavesToTheModelWhatItCannotDo) {
  Model model(kFeatures, kWidth);
  const FastLoss fast(model.parameters());
  const Batch batch = random_batch(64);
  EXPECT_TRUE(fast.fits(batch.features, batch.targets));
  EXPECT_FALSE(fast.fits(batch.features.to(at::kBFloat16), batch.targets));
  EXPECT_FALSE(fast.fits(batch.features, batch.targets.to(at::kDouble)));
  EXPECT_FALSE(fast.fits(batch.features.t().contiguous().t(), batch.targets));
  EXPECT_FALSE(fast.fits(batch.features.narrow(0, 0, 0), batch.targets.narrow(0, 0, 0)));
  EXPECT_FALSE(fast.fits(batch.features.clone().requires_grad_(true), batch.targets));
  {
    const train::AutocastGuard autocast(at::kCPU, at::kBFloat16);
    EXPECT_FALSE(fast.fits(batch.features, batch.targets));
  }
  Model narrow(kFeatures, 32);  // a layer of four
  EXPECT_FALSE(FastLoss(narrow.parameters()).fits(batch.features, batch.targets));
  model.parameters()[3].requires_grad_(false);
  EXPECT_FALSE(fast.fits(batch.features, batch.targets));
}

}  // namespace
}  // namespace unidle::workloads::recsys
