#include "workloads/recsys/model.h"

namespace unidle::workloads::recsys {

Perceptron::Perceptron(std::int64_t inputs, const std::vector<std::int64_t>& widths) {
  std::vector<std::int64_t> outputs = widths;
  outputs.push_back(1);
  for (const std::int64_t width : outputs) {
    layers_.push_back(register_module("layer" + std::to_string(layers_.size()), torch::nn::Linear(inputs, width)));
    inputs = width;
  }
}

at::Tensor Perceptron::forward(at::Tensor x) {
  for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer) {
    x = layers_[layer]->forward(x).relu();
  }
  return layers_.back()->forward(x).squeeze(1);
}

Model::Model(std::int64_t features, std::int64_t width)
    : play_(register_module(
          "play", std::make_shared<Perceptron>(features, std::vector<std::int64_t>{width, width / 2, width / 4}))),
      click_(register_module("click", std::make_shared<Perceptron>(
                                          features, std::vector<std::int64_t>{width / 2, width / 4, width / 8}))) {}

Prediction Model::forward(const at::Tensor& features) { return {play_->forward(features), click_->forward(features)}; }

at::Tensor log_seconds(const at::Tensor& milliseconds) { return (milliseconds * 1e-3).log1p(); }

at::Tensor loss_of(const Prediction& prediction, const at::Tensor& targets) {
  return at::mse_loss(prediction.log_play.to(at::kFloat), log_seconds(targets.select(1, kPlayTime))) +
         at::binary_cross_entropy_with_logits(prediction.click.to(at::kFloat), targets.select(1, kClick));
}

}  // namespace unidle::workloads::recsys
