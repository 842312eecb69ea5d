#include "workloads/common/npy_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/sources/npy.h"

namespace unidle::workloads {

namespace {

const char* numpy_name(at::ScalarType type) {
  switch (type) {
    case at::kByte: return "|u1";
    case at::kLong: return "<i8";
    case at::kFloat: return "<f4";
    default: throw Error(ErrorCode::kInternal, "write_npy", "has no name for that type");
  }
}

at::ScalarType torch_type(data::DType type, const std::string& path) {
  switch (type) {
    case data::DType::kU8: return at::kByte;
    case data::DType::kI64: return at::kLong;
    case data::DType::kF32: return at::kFloat;
    default:
      throw Error(ErrorCode::kInput, path, fmt::format("holds {}; expected float32, int64 or uint8", name_of(type)));
  }
}

}  // namespace

void write_npy(const std::filesystem::path& path, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", numpy_name(whole.scalar_type()),
                  fmt::join(whole.sizes().begin(), whole.sizes().end(), ", "));
  constexpr std::size_t kPreamble = 10;
  constexpr std::size_t kAlignment = 64;  // in numpy's format 1.0 the data begins at a multiple of this
  header.append(kAlignment - 1 - (kPreamble + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char*>(whole.const_data_ptr()), whole.nbytes());
  write_file_atomic(path, bytes);
}

at::Tensor read_npy(const std::filesystem::path& path) {
  const data::NpySource source(path.string(), {});
  const data::Field& field = source.fields()[0];
  std::vector<std::int64_t> shape = {source.items()};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  at::Tensor tensor = at::empty(shape, torch_type(field.dtype, path.string()));
  std::vector<data::ItemRequest> requests;
  requests.reserve(static_cast<std::size_t>(source.items()));
  for (std::int64_t item = 0; item < source.items(); ++item) {
    requests.push_back({item, 0, 0});
  }
  const data::Rows rows{static_cast<std::byte*>(tensor.mutable_data_ptr()), field.bytes()};
  source.gather(requests, {&rows, 1});
  return tensor;
}

}  // namespace unidle::workloads
