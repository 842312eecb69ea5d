// The other end of CommandPredictor: a predictor as a program.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "unidle/cache/predictor.h"

namespace unidle::cache {

/// Speaks docs/predictor-protocol.md: questions on `in`, answers on `out`, both blocking. `make` gets the parameters of
/// the hello. Returns after the bye, and when the input ends between two questions. Throws what `make` and the
/// predictor throw, kInput for what is no protocol, and kIo when nobody reads the answers or half a question came.
void serve(int in, int out, const std::function<std::unique_ptr<Predictor>(const nlohmann::json& parameters)>& make);

}  // namespace unidle::cache
