// Predictors that are part of unidle.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::cache {

/// "peptide" (peptide.h) and "peptide-ensemble" (ensemble.h).
std::vector<std::string> builtin_names();
/// Throws kUsage, naming all there are, for what is none.
PredictorFactory builtin_predictor(std::string_view name);

}  // namespace unidle::cache
