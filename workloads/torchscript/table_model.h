// Models over the rows of a table that Python wrote.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

namespace unidle::workloads::torchscript {

/// What Python wrote, as the engine knows modules: with its parameters and buffers, under the names of their state
/// dict. One thread.
class TableModel : public torch::nn::Module {
 public:
  /// [rows, features] to what the model makes of them.
  virtual at::Tensor forward(const at::Tensor& rows) = 0;

 protected:
  /// `path` is as in a state dict: "a.b.weight".
  void add_parameter(const std::string& path, const at::Tensor& value);
  void add_buffer(const std::string& path, const at::Tensor& value);
};

/// Opens a TorchScript module or a program of torch.export on the device; which of them it is, its content tells.
/// Throws kInput naming the file for what is neither, or is damaged, or cannot be trained on rows of so many features.
std::unique_ptr<TableModel> load_model(const std::string& path, std::int64_t features, at::Device device);

}  // namespace unidle::workloads::torchscript
