#include "workloads/protein/predictors.h"

#include <array>

#include "unidle/base/error.h"
#include "workloads/protein/ensemble_features.h"
#include "workloads/protein/peptide_features.h"

namespace unidle::workloads::protein {

namespace {

struct Kind {
  std::string_view name;
  cache::PredictorFacts facts;
  cache::Prediction (*predict)(std::string_view sequence);
};

const std::array<Kind, 2>& kinds() {
  static const std::array<Kind, 2> kKinds = {
      {{"peptide", {"unidle/peptide", "2"}, peptide_features},
       {"peptide-ensemble", {"unidle/peptide-ensemble", "2"}, ensemble_features}}};
  return kKinds;
}

class FeaturePredictor final : public cache::Predictor {
 public:
  explicit FeaturePredictor(const Kind& kind) : kind_(kind) {}
  const cache::PredictorFacts& facts() const override { return kind_.facts; }
  std::vector<cache::Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override {
    std::vector<cache::Prediction> predictions;
    for (const std::string& input : inputs) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::kCancelled, std::string(kind_.name), "was stopped");
      }
      predictions.push_back(kind_.predict(input));
    }
    return predictions;
  }

 private:
  const Kind& kind_;
};

}  // namespace

std::vector<std::string> predictor_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

std::unique_ptr<cache::Predictor> make_predictor(std::string_view name) {
  for (const Kind& kind : kinds()) {
    if (kind.name == name) {
      return std::make_unique<FeaturePredictor>(kind);
    }
  }
  return nullptr;
}

}  // namespace unidle::workloads::protein
