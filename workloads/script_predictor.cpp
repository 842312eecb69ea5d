#include "workloads/script_predictor.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/cache/key.h"
#include "unidle/train/memory.h"

namespace unidle::workloads {

namespace {

using cache::DType;
using cache::Prediction;

std::optional<DType> dtype_of(at::ScalarType type) {
  static constexpr std::array<std::pair<at::ScalarType, DType>, 15> kTypes = {{{at::kBool, DType::kBool},
                                                                               {at::kByte, DType::kU8},
                                                                               {at::kChar, DType::kI8},
                                                                               {at::kUInt16, DType::kU16},
                                                                               {at::kShort, DType::kI16},
                                                                               {at::kUInt32, DType::kU32},
                                                                               {at::kInt, DType::kI32},
                                                                               {at::kUInt64, DType::kU64},
                                                                               {at::kLong, DType::kI64},
                                                                               {at::kHalf, DType::kF16},
                                                                               {at::kBFloat16, DType::kBF16},
                                                                               {at::kFloat, DType::kF32},
                                                                               {at::kDouble, DType::kF64},
                                                                               {at::kComplexFloat, DType::kC64},
                                                                               {at::kComplexDouble, DType::kC128}}};
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& each) { return each.first == type; });
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

Prediction refused(std::string why) { return {{}, std::move(why)}; }

Prediction prediction_of(const c10::Dict<std::string, at::Tensor>& arrays) {
  if (arrays.empty()) {
    return refused("the module gives no array for it");
  }
  Prediction prediction;
  for (const auto& entry : arrays) {
    const at::Tensor& value = entry.value();
    const auto type = dtype_of(value.scalar_type());
    if (!type || value.layout() != at::kStrided || value.is_quantized()) {
      return refused(fmt::format("the array '{}' is of a kind that the cache has not", entry.key()));
    }
    const at::Tensor plain = value.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
    cache::Tensor tensor{entry.key(), *type, {plain.sizes().begin(), plain.sizes().end()}, {}};
    tensor.data.resize(plain.nbytes());
    if (!tensor.data.empty()) {
      std::memcpy(tensor.data.data(), plain.const_data_ptr(), tensor.data.size());
    }
    prediction.tensors.push_back(std::move(tensor));
  }
  // In the order of their names: a dictionary's own may be another after a new start.
  std::sort(prediction.tensors.begin(), prediction.tensors.end(),
            [](const cache::Tensor& a, const cache::Tensor& b) { return a.name < b.name; });
  return prediction;
}

/// What the module itself says: torch puts where it happened in front.
std::string last_words(const std::exception& failure) {
  std::string_view text = failure.what();
  const std::size_t end = text.find_last_not_of(" \r\n");
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const std::size_t line = text.rfind('\n');
  const std::string words = printable_line(line == std::string_view::npos ? text : text.substr(line + 1));
  return words.empty() ? "the module raises for it" : words;
}

torch::jit::Module module_of(const std::string& bytes, const std::string& path, at::Device device) {
  try {
    std::istringstream stream(bytes);
    return torch::jit::load(stream, device);
  } catch (const std::exception& failure) {  // torch throws several kinds
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    throw Error(ErrorCode::kInput, path, "is no TorchScript module, or a damaged one",
                "make one with torch.jit.script(model).save(path)");
  }
}

}  // namespace

ScriptPredictor::ScriptPredictor(std::string path, at::Device device, const nlohmann::json& parameters)
    : path_(std::move(path)) {
  const std::string bytes = read_file(path_);  // what is hashed is what is loaded
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
  throw Error(ErrorCode::kInput, path_, "is no predictor",
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
    throw Error(ErrorCode::kUsage, path_, "does not take these parameters: " + last_words(failure));
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
    predictions.push_back(prediction_of(c10::impl::toTypedDict<std::string, at::Tensor>(answer.toGenericDict())));
  }
  return predictions;
}

std::vector<Prediction> ScriptPredictor::predict(std::span<const std::string> inputs, std::stop_token stop) {
  const c10::InferenceMode inference;
  if (stop.stop_requested()) {
    throw Error(ErrorCode::kCancelled, path_, "was stopped");
  }
  try {
    return predict_all(inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    if (inputs.size() == 1) {
      return {refused(train::is_out_of_memory(failure) ? "needs more memory than there is" : last_words(failure))};
    }
  }
  const std::size_t half = inputs.size() / 2;  // which of them is it?
  std::vector<Prediction> predictions = predict(inputs.first(half), stop);
  std::vector<Prediction> others = predict(inputs.subspan(half), stop);
  std::move(others.begin(), others.end(), std::back_inserter(predictions));
  return predictions;
}

}  // namespace unidle::workloads
