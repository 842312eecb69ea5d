// A TorchScript module as a predictor of the feature cache.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/predictors/torch_predictor.h"

namespace unidle::engine {

/// The module's forward takes the inputs of a batch, List[str], and gives List[Dict[str, Tensor]]: of each input its
/// named arrays. Parameters, when there are any, go once to its exported method configure(Dict[str, str]): texts as
/// they are, all else as JSON. What it is, for the keys: "torchscript", and the SHA-256 of the file; the device is no
/// part of it.
class ScriptPredictor final : public TorchPredictor {
 public:
  /// Throws kInput for what is no such module, kUsage for parameters that it does not take.
  ScriptPredictor(std::string path, at::Device device, const nlohmann::json& parameters);

 private:
  void check_forward() const;
  void configure(const nlohmann::json& parameters);
  /// Throws kInput when the answer has another number of entries.
  std::vector<cache::Prediction> predict_all(std::span<const std::string> inputs) override;

  torch::jit::Module module_;
};

}  // namespace unidle::engine
