// Tests update rules, schedules, averages and precision; expected numbers are those of torch 2.11 in Python.
#include "unidle/train/step/optimizer.h"

#include <gmock/gmock.h>

#include "unidle/train/step/ema.h"
#include "unidle/train/step/precision.h"
#include "unidle/train/step/schedule.h"

namespace unidle::train {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

std::vector<double> rates(const Schedule::Options& options) {
  const Schedule schedule(options);
  std::vector<double> all;
  for (std::int64_t step = 0; step < 10; ++step) {
    all.push_back(schedule.rate(step));
  }
  return all;
}

MATCHER(NearlyEqual, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-12; }

TEST(Schedule, IsThatOfTorch) {
  using enum Schedule::Kind;
  const std::vector<double> cosine = {
      1.0, 0.9755282581475768,  0.9045084971874737, 0.7938926261462366,  0.6545084971874737,
      0.5, 0.34549150281252633, 0.2061073738537635, 0.09549150281252633, 0.024471741852423234};
  const std::vector<double> one_cycle = {0.040000000000000036,
                                         0.52,
                                         1.0,
                                         0.9504846320134737,
                                         0.8117456539497631,
                                         0.6112620219362893,
                                         0.38874197806371075,
                                         0.18825834605023697,
                                         0.049519367986526286,
                                         4e-06};
  EXPECT_THAT(rates({.kind = kCosine, .rate = 1, .total_steps = 10}), Pointwise(NearlyEqual(), cosine));
  EXPECT_THAT(rates({.kind = kOneCycle, .rate = 1, .total_steps = 10}), Pointwise(NearlyEqual(), one_cycle));
  EXPECT_THAT(rates({.kind = kStep, .rate = 1, .total_steps = 10, .decay_steps = 3, .decay_factor = 0.5}),
              Pointwise(NearlyEqual(), std::vector<double>{1, 1, 1, .5, .5, .5, .25, .25, .25, .125}));
}

TEST(Schedule, WarmUpRisesToTheRateAndShiftsTheRest) {
  using enum Schedule::Kind;
  EXPECT_THAT(rates({.kind = kConstant, .rate = 1, .warmup_steps = 4, .total_steps = 10}),
              Pointwise(NearlyEqual(), std::vector<double>{.25, .5, .75, 1, 1, 1, 1, 1, 1, 1}));
  const Schedule cosine({.kind = kCosine, .rate = 1, .warmup_steps = 4, .total_steps = 10});
  EXPECT_DOUBLE_EQ(cosine.rate(4), 1);
  EXPECT_NEAR(cosine.rate(7), 0.5, 1e-12);
  EXPECT_NEAR(cosine.rate(10), 0, 1e-12);
  EXPECT_NEAR(cosine.rate(99), 0, 1e-12);
}

/// Weights 1, gradients 1, -2 and 0.5, rate 0.1; then gradients doubled.
std::vector<double> after_two_steps(Optimizer& optimizer, at::Tensor& parameter) {
  const at::Tensor gradient = at::tensor({1.0F, -2.0F, 0.5F});
  for (const double factor : {1.0, 2.0}) {
    parameter.mutable_grad() = gradient * factor;
    optimizer.set_rate(0.1);
    optimizer.step();
  }
  const at::Tensor host = parameter.detach().to(at::kDouble);
  return {host[0].item<double>(), host[1].item<double>(), host[2].item<double>()};
}

TEST(Optimizer, UpdatesAreThoseOfTorch) {
  for (const bool fused : {true, false}) {
    at::Tensor a = at::ones({3}).requires_grad_(true);
    Sgd sgd({a}, {.momentum = 0.9, .weight_decay = 0.1, .fused = fused});
    const std::vector<double> with_sgd = after_two_steps(sgd, a);
    at::Tensor b = at::ones({3}).requires_grad_(true);
    AdamW adamw({b}, {.weight_decay = 0.1, .fused = fused});
    const std::vector<double> with_adamw = after_two_steps(adamw, b);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(with_sgd[i], (std::vector<double>{0.5821000, 1.7491001, 0.7766000})[i], 1e-5) << fused;
      EXPECT_NEAR(with_adamw[i], (std::vector<double>{0.7845818, 1.1756182, 0.7845818})[i], 1e-5) << fused;
    }
  }
}

TEST(Optimizer, LeavesAloneWhatDoesNotLearnOrHasNoGradient) {
  for (const bool fused : {true, false}) {
    at::Tensor learns = at::ones({2}).requires_grad_(true);
    at::Tensor unused = at::ones({2}).requires_grad_(true);
    const at::Tensor frozen = at::ones({2});
    AdamW optimizer({frozen, unused, learns}, {.fused = fused});
    EXPECT_EQ(optimizer.parameters().size(), 2U);
    learns.mutable_grad() = at::ones({2});
    optimizer.set_rate(0.1);
    optimizer.step();
    EXPECT_TRUE(at::equal(unused.detach(), at::ones({2})));
    EXPECT_LT(learns[0].item<float>(), 1.0F);
  }
}

TEST(AveragedWeights, FollowTheWeightsAndStandInForThem) {
  torch::nn::Module model;
  at::Tensor weight = model.register_parameter("weight", at::zeros({2}));
  AveragedWeights averaged(model, 0.75);
  {
    const at::NoGradGuard no_grad;
    weight.fill_(1);
  }
  averaged.update();
  averaged.update();
  EXPECT_NEAR(averaged.averages()[0][0].item<double>(), 1 - 0.75 * 0.75, 1e-6);
  {
    const AveragedWeights::InUse in_use(averaged);
    EXPECT_NEAR(weight[0].item<double>(), 1 - 0.75 * 0.75, 1e-6);
  }
  EXPECT_EQ(weight[0].item<double>(), 1);
}

TEST(Optimizer, AParameterOfTwoNamesLearnsOnce) {
  const at::Tensor weight = at::ones({2}).requires_grad_();
  Sgd optimizer({weight, weight}, {.momentum = 0});
  weight.mutable_grad() = at::ones({2});
  optimizer.set_rate(0.25);
  optimizer.step();
  EXPECT_EQ(optimizer.parameters().size(), 1U);
  EXPECT_EQ(weight[0].item<double>(), 0.75);
}

TEST(Optimizer, ClippingBoundsTheCommonNorm) {
  const std::vector<at::Tensor> gradients = {at::full({3}, 3.0F), at::full({4}, -4.0F)};
  clip_gradients(gradients, 1.0);
  EXPECT_NEAR(at::cat(gradients).norm().item<double>(), 1.0, 1e-5);
  const at::Tensor kept = gradients[0].clone();
  clip_gradients(gradients, 5.0);
  EXPECT_TRUE(at::equal(kept, gradients[0]));
}

TEST(Precision, OverflowSkipsTheStepAndHalvesTheScale) {
  for (const bool fused : {true, false}) {
    Precision precision("fp16", at::kCPU);
    at::Tensor parameter = at::ones({4}).requires_grad_(true);
    AdamW optimizer({parameter}, {.fused = fused});
    parameter.mutable_grad() = at::full({4}, std::numeric_limits<float>::infinity());
    precision.unscale({parameter.grad()});
    optimizer.set_rate(0.1);
    optimizer.step(precision.found_inf());
    precision.update();
    EXPECT_TRUE(at::equal(parameter.detach(), at::ones({4}))) << fused;
    EXPECT_EQ(precision.state()[0].item<float>(), 32768.0F);

    parameter.mutable_grad() = at::full({4}, 32768.0F);  // 1 after unscaling
    precision.unscale({parameter.grad()});
    optimizer.set_rate(0.1);
    optimizer.step(precision.found_inf());
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
