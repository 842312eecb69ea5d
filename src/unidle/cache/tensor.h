// Named arrays, the contents of an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::cache {

/// Stored in files: do not change the numbers.
enum class DType : std::uint8_t {
  kBool = 0,
  kU8 = 1,
  kI8 = 2,
  kU16 = 3,
  kI16 = 4,
  kU32 = 5,
  kI32 = 6,
  kU64 = 7,
  kI64 = 8,
  kF16 = 9,
  kBF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kC64 = 13,
  kC128 = 14,
};

/// numpy's name, such as "float32"; also "bfloat16".
std::string_view to_string(DType type);
std::optional<DType> dtype_from(std::string_view name);
/// Size of one element; 0 for an unknown type.
std::size_t item_bytes(DType type);

/// Bytes of an array of that type and shape; nothing when they exceed a 64-bit address space.
std::optional<std::uint64_t> array_bytes(DType type, std::span<const std::uint64_t> shape);

/// A view of an array in C order. Valid as long as its origin.
struct TensorView {
  std::string_view name;
  DType dtype = DType::kU8;
  std::vector<std::uint64_t> shape;  // empty: one element
  std::span<const std::byte> data;   // exactly array_bytes(dtype, shape)

  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
};

/// An array that owns its data.
struct Tensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> data;

  TensorView view() const { return {name, dtype, shape, data}; }
};

std::vector<TensorView> views_of(std::span<const Tensor> tensors);

/// A named vector of `values`.
template <typename T>
Tensor make_tensor(std::string name, DType dtype, std::vector<std::uint64_t> shape, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {std::move(name), dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

}  // namespace unidle::cache
