// Predictors of structure features, for the feature cache.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::workloads::protein {

/// "peptide" (peptide_features.h) and "peptide-ensemble" (ensemble_features.h).
std::vector<std::string> predictor_names();
/// nullptr for an unknown name.
std::unique_ptr<cache::Predictor> make_predictor(std::string_view name);

}  // namespace unidle::workloads::protein
