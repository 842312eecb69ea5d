// One multi-layer perceptron per label, and their loss.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>
#include <vector>

namespace unidle::workloads::recsys {

/// Layers with ReLU between them; the last layer has one output.
class Perceptron : public torch::nn::Module {
 public:
  Perceptron(std::int64_t inputs, const std::vector<std::int64_t>& widths);
  at::Tensor forward(at::Tensor x);  // [n, inputs] -> [n]
  std::int64_t width() const { return layers_.front()->options.out_features(); }

 private:
  std::vector<torch::nn::Linear> layers_;
};

struct Prediction {
  at::Tensor log_play;  // log(1 + seconds)
  at::Tensor click;     // logit
};

/// Play time has layers of width, width/2 and width/4; clicks of width/2, width/4 and width/8. 43,330 parameters with
/// 157 features and width 128. Parameters have the same names as in the Python model.
class Model : public torch::nn::Module {
 public:
  Model(std::int64_t features, std::int64_t width);
  Prediction forward(const at::Tensor& features);
  /// Read back from the layers.
  std::int64_t width() const { return play_->width(); }

 private:
  std::shared_ptr<Perceptron> play_;
  std::shared_ptr<Perceptron> click_;
};

/// Columns of the targets.
enum Target : std::int64_t { kPlayTime, kClick, kTargets };

/// [n] milliseconds -> log(1 + seconds).
at::Tensor log_seconds(const at::Tensor& milliseconds);

/// Squared error of the log play time plus cross-entropy of the click, means over the batch. targets: [n, kTargets].
at::Tensor loss_of(const Prediction& prediction, const at::Tensor& targets);

}  // namespace unidle::workloads::recsys
