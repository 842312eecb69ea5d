// A recurrent forecaster: LSTM layers, attention over their outputs, a small head.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <cstdint>

namespace unidle::workloads::timeseries {

/// [n, length, features] -> [n]. 251,265 parameters with 38 features, width 128 and 2 layers. Parameters have the same
/// names as in the Python model.
class Forecaster : public torch::nn::Module {
 public:
  struct Options {
    std::int64_t features = 38;
    std::int64_t width = 128;
    std::int64_t depth = 2;
  };
  explicit Forecaster(const Options& options);
  at::Tensor forward(const at::Tensor& days);

  /// Read back from the layers.
  std::int64_t width() const;
  std::int64_t depth() const;

 private:
  /// [n, length, features] -> [length, n, width], the outputs of the last layer.
  at::Tensor seen(const at::Tensor& days);

  torch::nn::LSTM lstm_;
  torch::nn::Linear attention_hidden_;
  torch::nn::Linear attention_score_;
  torch::nn::Linear head_hidden_;
  torch::nn::Linear head_;
};

}  // namespace unidle::workloads::timeseries
