#include "unidle/cache/tensor.h"

#include <algorithm>
#include <array>

namespace unidle::cache {

namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};

/// By number.
constexpr std::array<TypeFacts, 15> kTypes = {{{"bool", 1},
                                               {"uint8", 1},
                                               {"int8", 1},
                                               {"uint16", 2},
                                               {"int16", 2},
                                               {"uint32", 4},
                                               {"int32", 4},
                                               {"uint64", 8},
                                               {"int64", 8},
                                               {"float16", 2},
                                               {"bfloat16", 2},
                                               {"float32", 4},
                                               {"float64", 8},
                                               {"complex64", 8},
                                               {"complex128", 16}}};

}  // namespace

std::string_view to_string(DType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kTypes.size() ? kTypes[number].name : "unknown";
}

std::optional<DType> dtype_from(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

std::size_t item_bytes(DType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kTypes.size() ? kTypes[number].bytes : 0;
}

std::optional<std::uint64_t> array_bytes(DType type, std::span<const std::uint64_t> shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;  // the size of an address space
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) {
    return 0;  // other extents may be anything
  }
  std::uint64_t bytes = item_bytes(type);
  for (const std::uint64_t extent : shape) {
    if (extent > kMost / bytes) {
      return std::nullopt;
    }
    bytes *= extent;
  }
  return bytes;
}

std::vector<TensorView> views_of(std::span<const Tensor> tensors) {
  std::vector<TensorView> views;
  views.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    views.push_back(tensor.view());
  }
  return views;
}

}  // namespace unidle::cache
