// Trains TorchScript modules written in Python.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>

namespace unidle::workloads::torchscript {

/// Has the script's parameters and buffers under the names of its state dict. One thread.
class ScriptModel final : public torch::nn::Module {
 public:
  /// `path` is for errors.
  ScriptModel(torch::jit::Module script, std::string path);

  void train(bool on = true) override;
  /// Maps [rows, features] to the model's output. Throws kInput when the script fails.
  at::Tensor forward(const at::Tensor& rows);

 private:
  void add_parameter(const std::string& path, const at::Tensor& value);
  void add_buffer(const std::string& path, const at::Tensor& value);

  torch::jit::Module script_;
  std::string path_;
};

/// Opens the file on the device. Throws kInput naming the file when it is damaged or not a TorchScript module.
std::unique_ptr<ScriptModel> load_script(const std::string& path, at::Device device);

}  // namespace unidle::workloads::torchscript
