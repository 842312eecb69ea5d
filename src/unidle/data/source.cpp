#include "unidle/data/source.h"

namespace unidle::data {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8: return 1;
    case DType::kU16:
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kU32:
    case DType::kI32:
    case DType::kF32: return 4;
    case DType::kU64:
    case DType::kI64:
    case DType::kF64: return 8;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kU8: return "uint8";
    case DType::kI8: return "int8";
    case DType::kU16: return "uint16";
    case DType::kI16: return "int16";
    case DType::kU32: return "uint32";
    case DType::kI32: return "int32";
    case DType::kU64: return "uint64";
    case DType::kI64: return "int64";
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kF32: return "float32";
    case DType::kF64: return "float64";
  }
  return "unknown";
}

std::size_t Field::bytes() const {
  return shape.empty() ? size_of(dtype) : row_bytes() * static_cast<std::size_t>(shape.front());
}

std::size_t Field::row_bytes() const {
  std::size_t count = size_of(dtype);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    count *= static_cast<std::size_t>(shape[axis]);
  }
  return count;
}

std::uint64_t Source::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  std::uint64_t bytes = 0;
  Places places(fields.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (std::size_t field = 0; field < fields.size(); ++field) {
      places[field] = fields[field].at(i);
    }
    bytes += read(requests[i], {&places, 1});
  }
  return bytes;
}

std::string Source::value_name(std::int64_t item, std::size_t field, std::int64_t) const {
  return "'" + fields()[field].name + "' of item " + std::to_string(item) + " of the training data";
}

std::int64_t Source::extent(std::int64_t, std::size_t field) const { return fields()[field].shape.front(); }

}  // namespace unidle::data
