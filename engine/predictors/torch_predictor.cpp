#include "engine/predictors/torch_predictor.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/printable.h"
#include "unidle/train/failure.h"

namespace unidle::engine {

using cache::DType;
using cache::Prediction;

namespace {

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

}  // namespace

Prediction refused(std::string why) { return {{}, std::move(why)}; }

Prediction prediction_of(const NamedTensors& arrays) {
  if (arrays.empty()) {
    return refused("the module gives no array for it");
  }
  Prediction prediction;
  for (const auto& [name, value] : arrays) {
    const auto type = dtype_of(value.scalar_type());
    if (!type || value.layout() != at::kStrided || value.is_quantized()) {
      return refused(fmt::format("the array '{}' is of a kind that the cache has not", name));
    }
    const at::Tensor plain = value.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
    cache::Tensor tensor{name, *type, {plain.sizes().begin(), plain.sizes().end()}, {}};
    tensor.data.resize(plain.nbytes());
    if (!tensor.data.empty()) {
      std::memcpy(tensor.data.data(), plain.const_data_ptr(), tensor.data.size());
    }
    prediction.tensors.push_back(std::move(tensor));
  }
  return prediction;
}

std::vector<Prediction> TorchPredictor::predict(std::span<const std::string> inputs, std::stop_token stop) {
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
      return {
          refused(train::is_out_of_memory(failure) ? "needs more memory than there is" : train::last_line_of(failure))};
    }
  }
  const std::size_t half = inputs.size() / 2;  // find the input at fault
  std::vector<Prediction> predictions = predict(inputs.first(half), stop);
  std::vector<Prediction> others = predict(inputs.subspan(half), stop);
  std::move(others.begin(), others.end(), std::back_inserter(predictions));
  return predictions;
}

}  // namespace unidle::engine
