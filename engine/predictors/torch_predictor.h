// The common part of predictors that are torch modules.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::engine {

/// The arrays of one input, sorted by name, so that an entry does not change between processes.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Copies to the CPU. Refuses an empty set, and types that the cache does not support.
cache::Prediction prediction_of(const NamedTensors& arrays);
cache::Prediction refused(std::string why);

/// An input for which the module alone raises an exception is refused with its message; so is one that needs more
/// memory than available. The others of its batch are computed. Used by one thread at a time.
class TorchPredictor : public cache::Predictor {
 public:
  const cache::PredictorFacts& facts() const override { return facts_; }
  std::vector<cache::Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override;

 protected:
  explicit TorchPredictor(std::string path) : path_(std::move(path)) {}
  /// One prediction per input. Exceptions concern some of the inputs, except unidle's Errors, which concern the module.
  virtual std::vector<cache::Prediction> predict_all(std::span<const std::string> inputs) = 0;

  std::string path_;
  cache::PredictorFacts facts_;
};

}  // namespace unidle::engine
