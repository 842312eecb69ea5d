#include "unidle/train/step/ema.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>

namespace unidle::train {

namespace {

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.detach().clone());
  }
  return all;
}

}  // namespace

AveragedWeights::AveragedWeights(const torch::nn::Module& model, double decay) : decay_(decay) {
  if (on()) {
    for (const at::Tensor& parameter : model.parameters()) {
      parameters_.push_back(parameter.detach());
    }
    averages_ = copies(parameters_);
  }
}

void AveragedWeights::update() {
  if (on()) {
    const at::NoGradGuard no_grad;
    at::_foreach_lerp_(averages_, parameters_, 1 - decay_);
  }
}

AveragedWeights::InUse::InUse(AveragedWeights& weights) : weights_(weights) {
  if (weights_.on()) {
    own_ = copies(weights_.parameters_);
    at::_foreach_copy_(weights_.parameters_, weights_.averages_);
  }
}

AveragedWeights::InUse::~InUse() {
  if (weights_.on()) {
    at::_foreach_copy_(weights_.parameters_, own_);
  }
}

}  // namespace unidle::train
