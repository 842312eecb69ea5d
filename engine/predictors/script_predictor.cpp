#include "engine/predictors/script_predictor.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/cache/key.h"
#include "unidle/train/failure.h"

namespace unidle::engine {

namespace {

using cache::Prediction;

torch::jit::Module module_of(const std::string& bytes, const std::string& path, at::Device device) {
  try {
    std::istringstream stream(bytes);
    return torch::jit::load(stream, device);
  } catch (const std::exception& failure) {  // torch throws various types
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    throw Error(ErrorCode::kInput, path, "is not a TorchScript module, or is damaged",
                "make one with torch.jit.script(model).save(path)");
  }
}

}  // namespace

ScriptPredictor::ScriptPredictor(std::string path, at::Device device, const nlohmann::json& parameters)
    : TorchPredictor(std::move(path)) {
  const std::string bytes = read_file(path_);  // ensures that the hashed bytes are the loaded ones
  module_ = module_of(bytes, path_, device);
  module_.eval();
  facts_ = {"torchscript", cache::sha256_of(bytes).hex()};
  check_forward();
  configure(parameters);
}

void ScriptPredictor::check_forward() const {
  const auto takes = c10::ListType::ofStrings();
  const auto gives = c10::ListType::create(c10::DictType::create(c10::StringType::get(), c10::TensorType::get()));
  const auto method = module_.find_method("forward");
  if (method) {
    const c10::FunctionSchema& schema = method->function().getSchema();
    if (schema.arguments().size() == 2 && *schema.arguments()[1].type() == *takes && schema.returns().size() == 1 &&
        *schema.returns()[0].type() == *gives) {
      return;
    }
  }
  throw Error(ErrorCode::kInput, path_, "is not a predictor",
              "def forward(self, inputs: List[str]) -> List[Dict[str, Tensor]]; see docs/cache.md");
}

void ScriptPredictor::configure(const nlohmann::json& parameters) {
  if (parameters.empty()) {
    return;
  }
  const auto method = module_.find_method("configure");
  if (!method) {
    throw Error(ErrorCode::kUsage, path_, "takes no parameters",
                "export a method: @torch.jit.export def configure(self, parameters: Dict[str, str]) -> None");
  }
  c10::Dict<std::string, std::string> texts;
  for (const auto& [name, value] : parameters.items()) {
    texts.insert(name, plain_text(value));
  }
  try {
    (*method)({texts});
  } catch (const std::exception& failure) {
    throw Error(ErrorCode::kUsage, path_, "does not take these parameters: " + train::last_line_of(failure));
  }
}

std::vector<Prediction> ScriptPredictor::predict_all(std::span<const std::string> inputs) {
  const c10::List<std::string> list(std::vector<std::string>(inputs.begin(), inputs.end()));
  const c10::List<c10::IValue> answers = module_.forward({list}).toList();
  if (answers.size() != inputs.size()) {
    throw Error(ErrorCode::kInput, path_, fmt::format("gives {} entries for {} inputs", answers.size(), inputs.size()));
  }
  std::vector<Prediction> predictions;
  for (const c10::IValue& answer : answers) {
    NamedTensors arrays;
    for (const auto& entry : c10::impl::toTypedDict<std::string, at::Tensor>(answer.toGenericDict())) {
      arrays.emplace(entry.key(), entry.value());
    }
    predictions.push_back(prediction_of(arrays));
  }
  return predictions;
}

}  // namespace unidle::engine
