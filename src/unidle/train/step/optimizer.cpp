#include "unidle/train/step/optimizer.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/train/config.h"

namespace unidle::train {

namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kClipEpsilon = 1e-6;  // as in torch.nn.utils.clip_grad_norm_

/// The parameters that require gradients; one with two names occurs once.
std::vector<at::Tensor> learning(std::vector<at::Tensor> parameters) {
  std::unordered_set<const at::TensorImpl*> known;
  std::erase_if(parameters, [&](const at::Tensor& parameter) {
    return !parameter.requires_grad() || !known.insert(parameter.unsafeGetTensorImpl()).second;
  });
  return parameters;
}

std::vector<at::Tensor> zeros_like(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& parameter : parameters) {
    zeros.push_back(at::zeros_like(parameter.detach()));
  }
  return zeros;
}

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

Optimizer::Optimizer(std::vector<at::Tensor> parameters, Options options)
    : parameters_(learning(std::move(parameters))), weight_decay_(options.weight_decay), fused_(options.fused) {}

void Optimizer::Part::clear() {
  places.clear();
  parameters.clear();
  gradients.clear();
}

const std::vector<at::Tensor>& Optimizer::Part::of(const std::vector<at::Tensor>& all,
                                                   std::vector<at::Tensor>& room) const {
  if (places.size() == all.size()) {
    return all;
  }
  room.clear();
  for (const std::size_t place : places) {
    room.push_back(all[place]);
  }
  return room;
}

void Optimizer::set_rate(double rate) {
  if (rate_on_device_.defined() && rate != rate_) {
    rate_on_device_.fill_(rate);
  }
  rate_ = rate;
}

void Optimizer::keep_rate_on_device() {
  TORCH_CHECK(fused_ && !parameters_.empty(), "only fused updates read their rate from the device");
  rate_on_device_ = at::full({}, rate_, parameters_[0].options().dtype(at::kFloat).requires_grad(false));
}

void Optimizer::step(const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  part_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].grad().defined()) {
      part_.places.push_back(i);
      part_.parameters.push_back(parameters_[i]);
      part_.gradients.push_back(parameters_[i].grad());
    }
  }
  if (fused_) {
    step_fused(part_, found_inf);
  } else if (!found_inf.defined() || found_inf.item<float>() == 0.0F) {
    step_each(part_);
  }
  part_.clear();  // releases gradients that were dropped
}

void Optimizer::load_state(const std::vector<at::Tensor>& state) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> own = this->state();
  TORCH_CHECK(own.size() == state.size(), "optimiser state of another model");
  for (std::size_t i = 0; i < own.size(); ++i) {
    TORCH_CHECK(own[i].sizes() == state[i].sizes(), "optimiser state of another model");
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i].copy_(state[i]);
  }
}

AdamW::AdamW(std::vector<at::Tensor> parameters, const Settings& settings)
    : Optimizer(std::move(parameters), {.weight_decay = settings.weight_decay, .fused = settings.fused}),
      means_(zeros_like(parameters_)),
      squares_(zeros_like(parameters_)) {
  const at::Device device = parameters_.empty() || !fused() ? at::Device(at::kCPU) : parameters_[0].device();
  steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
}

void AdamW::step_fused(const Part& part, const at::Tensor& found_inf) {
  counts_.assign(part.places.size(), steps_);
  steps_.add_(1);
  const auto update = [&](const auto& rate) {
    at::_fused_adamw_(part.parameters, part.gradients, part.of(means_, chosen_means_),
                      part.of(squares_, chosen_squares_), {}, counts_, rate, kBeta1, kBeta2, weight_decay(), kEpsilon,
                      /*amsgrad=*/false,
                      /*maximize=*/false, {}, if_defined(found_inf));
  };
  rate_on_device().defined() ? update(rate_on_device()) : update(rate());
  if (found_inf.defined()) {
    steps_.sub_(found_inf.squeeze());
  }
}

void AdamW::step_each(const Part& part) {
  steps_.add_(1);
  const double count = steps_.item<double>();
  const double step_size = rate() / (1 - std::pow(kBeta1, count));
  const double correction = std::sqrt(1 - std::pow(kBeta2, count));
  for (std::size_t i = 0; i < part.places.size(); ++i) {
    at::Tensor parameter = part.parameters[i];
    const at::Tensor& gradient = part.gradients[i];
    at::Tensor& mean = means_[part.places[i]];
    at::Tensor& square = squares_[part.places[i]];
    parameter.mul_(1 - rate() * weight_decay());
    mean.lerp_(gradient, 1 - kBeta1);
    square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    parameter.addcdiv_(mean, (square.sqrt() / correction).add_(kEpsilon), -step_size);
  }
}

std::vector<at::Tensor> AdamW::state() const {
  std::vector<at::Tensor> all = {steps_};
  all.insert(all.end(), means_.begin(), means_.end());
  all.insert(all.end(), squares_.begin(), squares_.end());
  return all;
}

Sgd::Sgd(std::vector<at::Tensor> parameters, const Settings& settings)
    : Optimizer(std::move(parameters), {.weight_decay = settings.weight_decay, .fused = settings.fused}),
      momentum_(settings.momentum),
      velocities_(zeros_like(parameters_)) {}

void Sgd::step_fused(const Part& part, const at::Tensor& found_inf) {
  const auto update = [&](const auto& rate) {
    // Velocities start at zero, so that the first step needs no special case.
    at::_fused_sgd_(
        part.parameters, part.gradients, part.of(velocities_, chosen_velocities_), weight_decay(), momentum_, rate,
        /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false, {}, if_defined(found_inf));
  };
  rate_on_device().defined() ? update(rate_on_device()) : update(rate());
}

void Sgd::step_each(const Part& part) {
  for (std::size_t i = 0; i < part.places.size(); ++i) {
    at::Tensor parameter = part.parameters[i];
    at::Tensor& velocity = velocities_[part.places[i]];
    velocity.mul_(momentum_).add_(part.gradients[i].add(parameter, weight_decay()));
    parameter.add_(velocity, -rate());
  }
}

std::unique_ptr<Optimizer> make_optimizer(const Config& config, std::vector<at::Tensor> parameters) {
  if (std::ranges::none_of(parameters, [](const at::Tensor& parameter) { return parameter.requires_grad(); })) {
    throw Error(ErrorCode::kInput, config.name(),
                fmt::format("the model of the workload {} has no parameter that learns", config.text("workload")),
                "one needs requires_grad");
  }
  const double weight_decay = config.real("optimizer.weight_decay");
  const bool fused = config.flag("optimizer.fused");
  if (config.text("optimizer.name") == "sgd") {
    return std::make_unique<Sgd>(
        std::move(parameters),
        Sgd::Settings{.momentum = config.real("optimizer.momentum"), .weight_decay = weight_decay, .fused = fused});
  }
  return std::make_unique<AdamW>(std::move(parameters), AdamW::Settings{.weight_decay = weight_decay, .fused = fused});
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

}  // namespace unidle::train
