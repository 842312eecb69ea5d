// An exponential moving average of a model's weights.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <vector>

namespace unidle::train {

/// After each step, average += (1 - decay) (parameter - average). Buffers (running statistics) are not averaged. Not
/// thread-safe.
class AveragedWeights {
 public:
  /// Starts as a copy. 0 <= decay < 1; with decay 0 nothing is stored and every call does nothing.
  AveragedWeights(const torch::nn::Module& model, double decay);

  bool on() const { return decay_ > 0; }
  double decay() const { return decay_; }
  void update();

  /// The model has the averaged weights while this lives.
  class InUse {
   public:
    explicit InUse(AveragedWeights& weights);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    AveragedWeights& weights_;
    std::vector<at::Tensor> own_;
  };

  /// One per parameter, in the order of the model; empty when off.
  const std::vector<at::Tensor>& averages() const { return averages_; }

 private:
  double decay_;
  std::vector<at::Tensor> parameters_;  // shared with the model
  std::vector<at::Tensor> averages_;
};

}  // namespace unidle::train
