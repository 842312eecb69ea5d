// The interface of predictors, which compute missing entries.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/cache/tensor.h"

namespace unidle::cache {

/// Part of the keys: another identity or version gives other entries.
struct PredictorFacts {
  std::string identity;
  std::string version;
  bool operator==(const PredictorFacts&) const = default;
};

/// The result for one input. If `error` is not empty, it says what is wrong with the input.
struct Prediction {
  std::vector<Tensor> tensors;
  std::string error;
};

/// One worker. Not thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual const PredictorFacts& facts() const = 0;
  /// Returns one prediction per input, in order. Throws kChild when the worker as a whole failed: it died, timed out,
  /// or sent an invalid answer; it is unusable then. Throws kCancelled on a stop.
  virtual std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) = 0;
};

/// Starts a worker. May throw kChild or kInput.
using PredictorFactory = std::function<std::unique_ptr<Predictor>(std::stop_token stop)>;

}  // namespace unidle::cache
