// The file format safetensors: a JSON header with names, types, shapes and places, then the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle::train {

/// One tensor of a file; `bytes` lie in the file's own.
struct SafeTensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", "I64", ...
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // row-major, little-endian
};

/// What a file holds, in the order of its header. Throws kInput naming `path` for what is no such file, or a damaged
/// one; every place and size is checked.
std::vector<SafeTensor> read_safetensors(std::string_view file, const std::string& path);

/// The file of these tensors.
std::string write_safetensors(std::span<const SafeTensor> tensors);

/// Bytes of one element; 0 for a type that there is not.
std::size_t safetensors_item_bytes(std::string_view dtype);

}  // namespace unidle::train
