// Uses a model compiled by AOTInductor as a predictor of the feature cache.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/predictors/torch_predictor.h"

namespace unidle::engine {

class UnpackedPackage;

/// A package (.pt2) of a model that takes tokens, int64 [batch, length], and lengths, int64 [batch], and returns
/// tensors whose first axis is the batch. Both sizes must be dynamic, from 1 on. The package's metadata describes the
/// tokens and names the tensors, under "unidle" (docs/cache.md). Its identity in cache keys is "aotinductor" and the
/// SHA-256 of the file. Loading a package runs code from it.
class PackagePredictor final : public TorchPredictor {
 public:
  /// `device`: auto, or the device that the package must have been compiled for. Throws kInput for an invalid package,
  /// kUsage for parameters, which are not supported, and for another device.
  PackagePredictor(std::string path, const std::string& device, const nlohmann::json& parameters);
  ~PackagePredictor() override;

 private:
  /// An output tensor, and those of its axes that follow the input's length: they are cut to it.
  struct Output {
    std::string name;
    std::vector<std::int64_t> along;
  };
  void read_contract(const std::string& text);
  std::vector<cache::Prediction> predict_all(std::span<const std::string> inputs) override;
  std::string fault_of(const std::string& input) const;
  void check(const std::vector<at::Tensor>& given, std::int64_t batch, std::int64_t length) const;

  std::unique_ptr<UnpackedPackage> package_;
  at::Device device_ = at::kCPU;
  std::array<std::int64_t, 256> tokens_{};  // by letter; 0: invalid
  std::size_t longest_ = 0;                 // 0: unlimited
  std::vector<Output> outputs_;
};

}  // namespace unidle::engine
