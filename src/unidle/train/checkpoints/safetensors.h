// The safetensors file format: a JSON header with names, types, shapes and offsets, then the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle::train {

/// One tensor of a file; `bytes` points into the file's bytes.
struct SafeTensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", "I64", ...
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // row-major, little-endian
};

/// The tensors of a file, in the order of its header. Throws kInput naming `path` when the file is damaged or of
/// another format; every offset and size is checked.
std::vector<SafeTensor> read_safetensors(std::string_view file, const std::string& path);

/// Serializes the tensors as a file.
std::string write_safetensors(std::span<const SafeTensor> tensors);

/// Bytes of one element; 0 for an unknown type.
std::size_t safetensors_item_bytes(std::string_view dtype);

}  // namespace unidle::train
