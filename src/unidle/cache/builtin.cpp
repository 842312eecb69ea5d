#include "unidle/cache/builtin.h"

#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/cache/peptide.h"

namespace unidle::cache {

namespace {

class PeptidePredictor final : public Predictor {
 public:
  const PredictorFacts& facts() const override {
    static const PredictorFacts kFacts = {"unidle/peptide", "1"};
    return kFacts;
  }
  std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override {
    std::vector<Prediction> predictions;
    for (const std::string& input : inputs) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::kCancelled, "peptide", "was stopped");
      }
      predictions.push_back(peptide_features(input));
    }
    return predictions;
  }
};

}  // namespace

std::vector<std::string> builtin_names() { return {"peptide"}; }

PredictorFactory builtin_predictor(std::string_view name) {
  if (name != "peptide") {
    throw Error(ErrorCode::kUsage, fmt::format("predictor {}", name), "is none of unidle's own",
                fmt::format("there is: {}", fmt::join(builtin_names(), ", ")));
  }
  return [](std::stop_token) { return std::make_unique<PeptidePredictor>(); };
}

}  // namespace unidle::cache
