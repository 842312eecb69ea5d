#include "workloads/superres/model.h"

#include <cmath>

#include "unidle/train/step/recompute.h"
#include "workloads/superres/fast_block.h"

namespace unidle::workloads::superres {

namespace {

constexpr double kNormMomentum = 0.1;
constexpr double kNormEpsilon = 1e-5;

/// Adds a submodule with these two, so that names match Python's modules.
Affine add_part(torch::nn::Module& module, const std::string& name, const at::Tensor& weight, const at::Tensor& bias) {
  const auto part = module.register_module(name, std::make_shared<torch::nn::Module>());
  return {part->register_parameter("weight", weight), part->register_parameter("bias", bias)};
}

/// Registers `name`.weight and `name`.bias with torch's default initialisation.
Affine add_affine(torch::nn::Module& module, const std::string& name, std::vector<std::int64_t> shape,
                  bool channels_last) {
  std::int64_t fan_in = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    fan_in *= shape[i];
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  at::Tensor weight = at::empty(shape).uniform_(-bound, bound);
  if (channels_last && weight.dim() == 4) {
    weight = weight.contiguous(at::MemoryFormat::ChannelsLast);
  }
  return add_part(module, name, weight, at::empty({shape[0]}).uniform_(-bound, bound));
}

Affine add_norm(torch::nn::Module& module, const std::string& name, std::int64_t width) {
  return add_part(module, name, at::ones({width}), at::zeros({width}));
}

/// In training, batch normalisation cancels the effect of this bias. Its true gradient is zero; rounding would make it
/// noise, which Adam scales up to full steps, so that runs that differ only in rounding would drift apart.
at::Tensor cancelled(const at::Tensor& bias, bool training) { return training ? bias.detach() + bias * 0 : bias; }

}  // namespace

Block::Block(std::int64_t width, bool channels_last)
    : width_(width),
      channels_last_(channels_last),
      depthwise_(add_affine(*this, "depthwise", {width, 1, 7, 7}, channels_last)),
      norm_(add_norm(*this, "norm", width)),
      expand_(add_affine(*this, "expand", {4 * width, width}, false)),
      project_(add_affine(*this, "project", {width, 4 * width}, false)),
      gamma_(register_parameter("gamma", at::ones({1}))) {}

at::Tensor Block::plain(const at::Tensor& x) const {
  // With channels-last both permutes are views, and the matrix products get contiguous rows.
  at::Tensor y = at::conv2d(x, depthwise_.weight, depthwise_.bias, 1, 3, 1, width_).permute({0, 2, 3, 1});
  y = at::layer_norm(y, {width_}, norm_.weight, norm_.bias);
  y = at::linear(at::gelu(at::linear(y, expand_.weight, expand_.bias)), project_.weight, project_.bias);
  return x + (gamma_ * y).permute({0, 3, 1, 2});
}

at::Tensor Block::forward(const at::Tensor& x) {
  const BlockWeights weights = {depthwise_.weight, depthwise_.bias, norm_.weight,  norm_.bias, expand_.weight,
                                expand_.bias,      project_.weight, project_.bias, gamma_};
  return channels_last_ && fast_block_fits(x, weights) ? fast_block(x, weights) : plain(x);
}

Model::Model(const ModelOptions& options)
    : options_(options),
      head_depthwise_(add_affine(*this, "head_depthwise", {3, 1, 3, 3}, options.channels_last)),
      head_pointwise_(add_affine(*this, "head_pointwise", {options.width, 3, 1, 1}, options.channels_last)),
      head_norm_(add_norm(*this, "head_norm", options.width)) {
  const auto norm = named_children()["head_norm"];
  running_mean_ = norm->register_buffer("running_mean", at::zeros({options.width}));
  running_variance_ = norm->register_buffer("running_var", at::ones({options.width}));
  batches_seen_ = norm->register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < options.depth; ++i) {
    blocks_.push_back(
        blocks->register_module(std::to_string(i), std::make_shared<Block>(options.width, options.channels_last)));
  }
  up1_ = add_affine(*this, "up1", {4 * (options.width / 2), options.width, 3, 3}, options.channels_last);
  up2_ = add_affine(*this, "up2", {12, options.width / 2, 3, 3}, options.channels_last);
}

at::Tensor Model::head(const at::Tensor& low) {
  const bool training = is_training();
  if (training) {
    batches_seen_.add_(1);  // unused here; Python's module has it
  }
  at::Tensor x = at::conv2d(low, head_depthwise_.weight, cancelled(head_depthwise_.bias, training), 1, 1, 1, 3);
  x = at::conv2d(x, head_pointwise_.weight, cancelled(head_pointwise_.bias, training));
  return at::relu(at::batch_norm(x, head_norm_.weight, head_norm_.bias, running_mean_, running_variance_, is_training(),
                                 kNormMomentum, kNormEpsilon, true));
}

at::Tensor Model::forward(const at::Tensor& low) {
  at::Tensor x = head(low);
  for (const std::shared_ptr<Block>& block : blocks_) {
    x = options_.recompute_blocks && x.requires_grad()
            ? train::recompute([block](const auto& inputs) { return block->forward(inputs[0]); }, {x})
            : block->forward(x);
  }
  x = at::pixel_shuffle(at::conv2d(x, up1_.weight, up1_.bias, 1, 1), 2);
  return at::pixel_shuffle(at::conv2d(x, up2_.weight, up2_.bias, 1, 1), 2);
}

}  // namespace unidle::workloads::superres
