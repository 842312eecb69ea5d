// What predictors of the feature cache that are modules of torch have in common.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::engine {

/// The arrays of one input. In the order of their names, so that an entry is the same after a new start.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Copied to the CPU. Refused when there is none, or one of a type that the cache has not.
cache::Prediction prediction_of(const NamedTensors& arrays);
cache::Prediction refused(std::string why);

/// An input that the module raises for, alone, is refused with what it says; so is one that needs more memory than
/// there is. The others of its batch are computed. Used by one thread at a time.
class TorchPredictor : public cache::Predictor {
 public:
  const cache::PredictorFacts& facts() const override { return facts_; }
  std::vector<cache::Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override;

 protected:
  explicit TorchPredictor(std::string path) : path_(std::move(path)) {}
  /// One prediction an input. What it throws is about some of the inputs, but for Errors of unidle, which are about the
  /// module.
  virtual std::vector<cache::Prediction> predict_all(std::span<const std::string> inputs) = 0;

  std::string path_;
  cache::PredictorFacts facts_;
};

}  // namespace unidle::engine
