#include "unidle/train/optimizer.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace unidle::train {

namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kClipEpsilon = 1e-6;  // as torch.nn.utils.clip_grad_norm_

}  // namespace

AdamW::AdamW(std::vector<at::Tensor> parameters, const Options& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const at::Tensor& parameter : parameters_) {
    means_.push_back(at::zeros_like(parameter.detach()));
    squares_.push_back(at::zeros_like(parameter.detach()));
  }
  const at::Device device = parameters_.empty() || !options_.fused ? at::Device(at::kCPU) : parameters_[0].device();
  steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
}

void AdamW::step(double lr, const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  if (options_.fused) {
    step_fused(lr, found_inf);
  } else if (!found_inf.defined() || found_inf.item<float>() == 0.0F) {
    step_each(lr);
  }
}

void AdamW::step_fused(double lr, const at::Tensor& found_inf) {
  const std::vector<at::Tensor> gradients = gradients_of(parameters_);
  const std::vector<at::Tensor> counts(parameters_.size(), steps_);
  steps_.add_(1);
  at::_fused_adamw_(parameters_, gradients, means_, squares_, {}, counts, lr, kBeta1, kBeta2, options_.weight_decay,
                    kEpsilon, /*amsgrad=*/false, /*maximize=*/false, {},
                    found_inf.defined() ? std::optional(found_inf) : std::nullopt);
  if (found_inf.defined()) {
    steps_.sub_(found_inf.squeeze());
  }
}

void AdamW::step_each(double lr) {
  steps_.add_(1);
  const double count = steps_.item<double>();
  const double step_size = lr / (1 - std::pow(kBeta1, count));
  const double correction = std::sqrt(1 - std::pow(kBeta2, count));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    const at::Tensor& gradient = parameter.grad();
    parameter.mul_(1 - lr * options_.weight_decay);
    means_[i].lerp_(gradient, 1 - kBeta1);
    squares_[i].mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    parameter.addcdiv_(means_[i], (squares_[i].sqrt() / correction).add_(kEpsilon), -step_size);
  }
}

std::vector<at::Tensor> AdamW::state() const {
  std::vector<at::Tensor> all = {steps_};
  all.insert(all.end(), means_.begin(), means_.end());
  all.insert(all.end(), squares_.begin(), squares_.end());
  return all;
}

void AdamW::load_state(const std::vector<at::Tensor>& state) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> own = this->state();
  TORCH_CHECK(own.size() == state.size(), "optimiser state of another model");
  for (std::size_t i = 0; i < own.size(); ++i) {
    TORCH_CHECK(own[i].sizes() == state[i].sizes(), "optimiser state of another model");
    own[i].copy_(state[i]);
  }
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) {
      gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

void clip_gradients(const std::vector<at::Tensor>& gradients, double limit) {
  const at::NoGradGuard no_grad;
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)));
  at::_foreach_mul_(gradients, (limit / (norm + kClipEpsilon)).clamp_max(1.0));
}

void clear_gradients(const std::vector<at::Tensor>& parameters, bool to_none) {
  if (!to_none) {
    const at::NoGradGuard no_grad;
    at::_foreach_zero_(gradients_of(parameters));
    return;
  }
  for (const at::Tensor& parameter : parameters) {
    parameter.mutable_grad().reset();
  }
}

double scheduled_rate(double base, std::int64_t warmup, std::int64_t step) {
  return warmup <= 0 ? base : base * std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(warmup));
}

}  // namespace unidle::train
