// The loss of both perceptrons and all of its gradients on a CPU, as one operation.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace unidle::workloads::recsys {

/// Equal to loss_of(model(features), targets) within rounding, gradients too. What it saves, at batches of 64: starting
/// hundreds of torch's operations that work for less than a microsecond each, and autograd's pass over them. A few rows
/// go forward and backward through all layers while they are in the cache. Not thread-safe; memory that it works in is
/// kept from call to call.
class FastLoss {
 public:
  /// Weight [outputs, inputs] and bias of each layer of the perceptron for play times, then of that for clicks. A layer
  /// with one output ends each.
  explicit FastLoss(std::vector<at::Tensor> parameters);

  /// At least one row in fp32 on a CPU with AVX2, outside autocast, hidden layers' widths multiples of 8. For the rest
  /// there is the model.
  bool fits(const at::Tensor& features, const at::Tensor& targets) const;

  /// features [n, inputs], targets [n, 2] -> the loss, without a graph. Adds `share` of its gradients to those of the
  /// parameters. REQUIRES: fits().
  at::Tensor learn(const at::Tensor& features, const at::Tensor& targets, double share);

 private:
  struct Layer {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t columns;  // outputs in whole lanes
    std::size_t place;     // of its weight among the parameters; its bias comes next
    std::vector<float> panels;
  };
  /// What one thread works with.
  struct Worker {
    std::vector<float> features;             // rows in whole lanes
    std::vector<std::vector<float>> values;  // of each layer
    std::vector<float> gradient;             // of what the layer at hand makes
    std::vector<float> gradient_before;      // of what it gets
    std::vector<std::vector<float>> own;     // gradients of parameters, where it is not the first worker
    std::vector<float*> sums;                // where it sums gradients of parameters
    double loss = 0;
  };
  struct Rows;

  void prepare_workers(std::int64_t count, const std::vector<at::Tensor>& gradients);
  void learn_from(Worker& worker, const Rows& rows, bool first) const;
  void forward(Worker& worker, std::size_t first_layer, std::size_t last_layer, std::int64_t rows) const;
  void backward(Worker& worker, std::size_t first_layer, std::size_t last_layer, std::int64_t rows, bool first) const;

  std::vector<at::Tensor> parameters_;
  std::vector<Layer> layers_;
  std::size_t click_ = 0;  // the first layer of the second perceptron
  bool widths_fit_ = true;
  std::vector<Worker> workers_;
};

}  // namespace unidle::workloads::recsys
