#include "unidle/train/checkpoints/safetensors.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"

namespace unidle::train {

namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own reader
constexpr std::size_t kAlignment = 8;                    // of the data

[[noreturn]] void damaged_tensors(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kInput, path, "is not a safetensors file, or is damaged: " + what);
}

/// A non-negative integer.
std::uint64_t number(const Json& value, const std::string& path) {
  if (!value.is_number_unsigned()) {
    damaged_tensors(path, "a size or offset is not a number");
  }
  return value.get<std::uint64_t>();
}

/// Bytes of a tensor; more than `limit` is damage.
std::uint64_t bytes_of(SafeTensor& tensor, const Json& shape, std::uint64_t limit, const std::string& path) {
  std::uint64_t bytes = safetensors_item_bytes(tensor.dtype);
  if (bytes == 0) {
    damaged_tensors(path, fmt::format("'{}' has the unknown type {}", tensor.name, tensor.dtype));
  }
  bool empty = false;
  for (const Json& extent : shape) {
    const std::uint64_t size = number(extent, path);
    empty |= size == 0;
    if (size > limit || (size > 0 && bytes > limit / size)) {
      damaged_tensors(path, fmt::format("'{}' is larger than the file", tensor.name));
    }
    bytes *= std::max<std::uint64_t>(size, 1);
    tensor.shape.push_back(static_cast<std::int64_t>(size));
  }
  return empty ? 0 : bytes;
}

SafeTensor tensor_of(const std::string& name, const Json& entry, std::string_view data, const std::string& path) {
  const auto complete = [&] {
    return entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() && entry.contains("shape") &&
           entry["shape"].is_array() && entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
           entry["data_offsets"].size() == 2;
  };
  if (!complete()) {
    damaged_tensors(path, fmt::format("'{}' lacks its dtype, shape or data_offsets", name));
  }
  SafeTensor tensor{name, entry["dtype"].get<std::string>(), {}, {}};
  const std::uint64_t bytes = bytes_of(tensor, entry["shape"], data.size(), path);
  const std::uint64_t begin = number(entry["data_offsets"][0], path);
  const std::uint64_t end = number(entry["data_offsets"][1], path);
  if (begin > end || end > data.size() || end - begin != bytes) {
    damaged_tensors(path, fmt::format("'{}' does not lie where its shape says", name));
  }
  tensor.bytes = data.substr(begin, bytes);
  return tensor;
}

}  // namespace

std::size_t safetensors_item_bytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64") {
    return 8;
  }
  if (dtype == "F32" || dtype == "I32") {
    return 4;
  }
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16") {
    return 2;
  }
  return dtype == "I8" || dtype == "U8" || dtype == "BOOL" ? 1 : 0;
}

std::vector<SafeTensor> read_safetensors(std::string_view file, const std::string& path) {
  std::uint64_t length = 0;
  if (file.size() < kLengthBytes) {
    damaged_tensors(path, "it is too short");
  }
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes) {
    damaged_tensors(path, "its header is longer than the file");
  }
  const Json header = Json::parse(file.substr(kLengthBytes, length), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) {
    damaged_tensors(path, "its header is not a JSON object");
  }
  const std::string_view data = file.substr(kLengthBytes + length);
  std::vector<SafeTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors.push_back(tensor_of(name, entry, data, path));
    }
  }
  return tensors;
}

std::string write_safetensors(std::span<const SafeTensor> tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end = 0;
  for (const SafeTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes.size()}}};
    end += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const std::uint64_t length = text.size();
  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  file.reserve(file.size() + text.size() + end);
  file += text;
  for (const SafeTensor& tensor : tensors) {
    file += tensor.bytes;
  }
  return file;
}

}  // namespace unidle::train
