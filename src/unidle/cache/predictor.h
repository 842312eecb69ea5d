// What computes the entries that are missing.
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

/// What becomes part of the keys: another identity or version gives other entries.
struct PredictorFacts {
  std::string identity;
  std::string version;
  bool operator==(const PredictorFacts&) const = default;
};

/// Of one input. `error` is empty when there are tensors; otherwise it says in words what is wrong with the input.
struct Prediction {
  std::vector<Tensor> tensors;
  std::string error;
};

/// One worker; used by one thread at a time.
class Predictor {
 public:
  virtual ~Predictor() = default;
  virtual const PredictorFacts& facts() const = 0;
  /// One prediction an input, in their order. Throws kChild when the worker failed as a whole, whatever the input: it
  /// died, did not answer in time, or answered what is no answer. It is of no use then. Throws kCancelled on a stop.
  virtual std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) = 0;
};

/// Starts a worker. May throw kChild or kInput.
using PredictorFactory = std::function<std::unique_ptr<Predictor>(std::stop_token stop)>;

}  // namespace unidle::cache
