#include "unidle/cache/builtin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "unidle/base/error.h"
#include "unidle/cache/ensemble.h"
#include "unidle/cache/peptide.h"

namespace unidle::cache {

namespace {

struct Builtin {
  std::string_view name;
  PredictorFacts facts;
  Prediction (*predict)(std::string_view input);
};

const std::array<Builtin, 2>& builtins() {
  static const std::array<Builtin, 2> kBuiltins = {
      {{"peptide", {"unidle/peptide", "2"}, peptide_features},
       {"peptide-ensemble", {"unidle/peptide-ensemble", "2"}, ensemble_features}}};
  return kBuiltins;
}

class BuiltinPredictor final : public Predictor {
 public:
  explicit BuiltinPredictor(const Builtin& builtin) : builtin_(builtin) {}
  const PredictorFacts& facts() const override { return builtin_.facts; }
  std::vector<Prediction> predict(std::span<const std::string> inputs, std::stop_token stop) override {
    std::vector<Prediction> predictions;
    for (const std::string& input : inputs) {
      if (stop.stop_requested()) {
        throw Error(ErrorCode::kCancelled, std::string(builtin_.name), "was stopped");
      }
      predictions.push_back(builtin_.predict(input));
    }
    return predictions;
  }

 private:
  const Builtin& builtin_;
};

}  // namespace

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const Builtin& builtin : builtins()) {
    names.emplace_back(builtin.name);
  }
  return names;
}

PredictorFactory builtin_predictor(std::string_view name) {
  for (const Builtin& builtin : builtins()) {
    if (builtin.name == name) {
      return [&builtin](std::stop_token) { return std::make_unique<BuiltinPredictor>(builtin); };
    }
  }
  throw Error(
      ErrorCode::kUsage, fmt::format("predictor {}", name), "is none of unidle's own",
      fmt::format("there are: {}; anything else is the path of a TorchScript file", fmt::join(builtin_names(), ", ")));
}

}  // namespace unidle::cache
