// A model compiled ahead by AOTInductor as a predictor of the feature cache.
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

/// A package (.pt2) of a model that takes tokens, int64 [batch, length], and lengths, int64 [batch], and gives tensors
/// whose first axis is the batch. Both extents must be dynamic, from 1. What the tokens are and what the tensors are
/// called stands in the package's metadata, under "unidle" (docs/cache.md). What it is, for the keys: "aotinductor",
/// and the SHA-256 of the file. Loading a package runs the code that is in it.
class PackagePredictor final : public TorchPredictor {
 public:
  /// `device`: auto, or what the package must have been compiled for. Throws kInput for what is no such package, kUsage
  /// for parameters, which it has none of, and for another device.
  PackagePredictor(std::string path, const std::string& device, const nlohmann::json& parameters);
  ~PackagePredictor() override;

 private:
  /// A tensor that the model gives, and those of its axes that go along the input: of a shorter one less is kept.
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
  std::array<std::int64_t, 256> tokens_{};  // by letter; 0: none
  std::size_t longest_ = 0;                 // 0: any
  std::vector<Output> outputs_;
};

}  // namespace unidle::engine
