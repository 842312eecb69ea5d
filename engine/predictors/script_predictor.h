// Uses a TorchScript module as a predictor of the feature cache.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/predictors/torch_predictor.h"

namespace unidle::engine {

/// The module's forward maps the inputs of a batch, List[str], to List[Dict[str, Tensor]]: the named arrays of each
/// input. Parameters, if any, are passed once to its exported method configure(Dict[str, str]): texts unchanged, other
/// values as JSON. Its identity in cache keys is "torchscript" and the SHA-256 of the file; the device is not part of
/// it.
class ScriptPredictor final : public TorchPredictor {
 public:
  /// Throws kInput for an invalid module, kUsage for parameters that it does not accept.
  ScriptPredictor(std::string path, at::Device device, const nlohmann::json& parameters);

 private:
  void check_forward() const;
  void configure(const nlohmann::json& parameters);
  /// Throws kInput when the answer has another number of entries.
  std::vector<cache::Prediction> predict_all(std::span<const std::string> inputs) override;

  torch::jit::Module module_;
};

}  // namespace unidle::engine
