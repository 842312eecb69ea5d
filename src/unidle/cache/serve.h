// The program's side of CommandPredictor: serves a predictor.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "unidle/cache/predictor.h"

namespace unidle::cache {

/// Speaks docs/predictor-protocol.md: questions on `in`, answers on `out`, both blocking. `make` gets the parameters of
/// the hello. Returns after the bye, or when the input ends between two questions. Throws the exceptions of `make` and
/// the predictor, kInput for invalid messages, and kIo when nobody reads the answers or a question is truncated.
void serve(int in, int out, const std::function<std::unique_ptr<Predictor>(const nlohmann::json& parameters)>& make);

}  // namespace unidle::cache
