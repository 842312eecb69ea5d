// The loss of both perceptrons with all gradients on a CPU, as one operation.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace unidle::workloads::recsys {

/// Equals loss_of(model(features), targets) up to rounding, gradients included. At batches of 64 it saves launching
/// hundreds of torch operations of less than a microsecond each, and autograd's pass over them. A few rows pass forward
/// and backward through all layers while they are in the cache. Not thread-safe; buffers are reused between calls.
class FastLoss {
 public:
  /// Weight [outputs, inputs] and bias of each layer: first the perceptron for play times, then the one for clicks.
  /// Each ends with a layer with one output.
  explicit FastLoss(std::vector<at::Tensor> parameters);

  /// Whether the inputs are supported: at least one row in fp32 on a CPU with AVX2, outside autocast, widths of hidden
  /// layers multiples of 8. Otherwise use the model.
  bool fits(const at::Tensor& features, const at::Tensor& targets) const;

  /// features [n, inputs], targets [n, 2] -> the loss, without a graph. Adds `share` times its gradients to those of
  /// the parameters. REQUIRES: fits().
  at::Tensor learn(const at::Tensor& features, const at::Tensor& targets, double share);

 private:
  struct Layer {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t columns;  // outputs, rounded up to whole vectors
    std::size_t place;     // index of its weight among the parameters; its bias is next
    std::vector<float> panels;
  };
  /// The buffers of one thread.
  struct Worker {
    std::vector<float> features;             // rows padded to whole vectors
    std::vector<std::vector<float>> values;  // of each layer
    std::vector<float> gradient;             // with respect to the current layer's output
    std::vector<float> gradient_before;      // with respect to its input
    std::vector<std::vector<float>> own;     // gradients of parameters, except in the first worker
    std::vector<float*> sums;                // where gradients of parameters are summed
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
