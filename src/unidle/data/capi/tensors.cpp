#include "unidle/data/capi/tensors.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "unidle/base/error.h"

namespace unidle::capi {

using data::ArrayView;
using data::DType;

namespace {

unidle_dl_type dl_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(data::size_of(dtype) * 8);
  switch (dtype) {
    case DType::kBool: return {6, bits, 1};
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64: return {1, bits, 1};
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64: return {0, bits, 1};
    case DType::kF16:
    case DType::kF32:
    case DType::kF64: return {2, bits, 1};
    case DType::kBF16: return {4, bits, 1};
  }
  return {0, bits, 1};
}

constexpr DType kDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,
                             DType::kU32,  DType::kI32, DType::kU64, DType::kI64, DType::kF16,
                             DType::kBF16, DType::kF32, DType::kF64};

/// A tensor that owns memory of a loader's pool.
struct Taken {
  unidle_dl_managed managed{};
  std::shared_ptr<data::BufferPool> pool;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  ~Taken() {
    if (memory != nullptr) {
      pool->release(memory, bytes);
    }
  }
  static void dispose(unidle_dl_managed* managed) { delete static_cast<Taken*>(managed->manager); }
};

/// A tensor with the extents of a field in this batch, without memory.
std::unique_ptr<Taken> shaped_as(const data::Batch& batch, std::size_t index, const data::Field& field) {
  auto taken = std::make_unique<Taken>();
  taken->shape.push_back(batch.samples());
  taken->shape.insert(taken->shape.end(), field.shape.begin(), field.shape.end());
  if (field.ragged) {
    taken->shape[1] = batch.extent(index);
  }
  taken->strides.resize(taken->shape.size());
  std::int64_t dense = 1;
  for (std::size_t axis = taken->shape.size(); axis-- > 0;) {
    taken->strides[axis] = dense;
    dense *= taken->shape[axis];
  }
  taken->managed = {{nullptr,
                     {1, 0},
                     static_cast<std::int32_t>(taken->shape.size()),
                     dl_type(field.dtype),
                     taken->shape.data(),
                     taken->strides.data(),
                     0},
                    taken.get(),
                    &Taken::dispose};
  return taken;
}

}  // namespace

bool take_back(unidle_dl_managed& tensor) {
  auto& taken = *static_cast<Taken*>(tensor.manager);
  if (!taken.pool->take_back(taken.memory)) {
    return false;
  }
  taken.memory = nullptr;
  return true;
}

ArrayView view_of(const unidle_dl_tensor& tensor) {
  ArrayView view;
  bool known = false;
  for (const DType dtype : kDTypes) {
    const unidle_dl_type type = dl_type(dtype);
    if (type.code == tensor.dtype.code && type.bits == tensor.dtype.bits && tensor.dtype.lanes == 1) {
      view.dtype = dtype;
      known = true;
    }
  }
  if (!known || tensor.device.device_type != 1 || tensor.ndim < 0) {
    throw Error(ErrorCode::kUsage, "array", "expected numbers or booleans of up to 8 bytes in the host's memory");
  }
  const auto size = static_cast<std::int64_t>(data::size_of(view.dtype));
  view.data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  view.strides.resize(view.shape.size());
  std::int64_t dense = size;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    view.strides[axis] = tensor.strides != nullptr ? tensor.strides[axis] * size : dense;
    dense *= view.shape[axis];
  }
  return view;
}

std::vector<TakenTensor> take_fields(data::Batch& batch, std::span<const data::Field> fields,
                                     const data::Loader& loader, const std::shared_ptr<data::BufferPool>& pool) {
  std::vector<TakenTensor> tensors;
  std::vector<Taken*> taken;
  tensors.reserve(fields.size());
  taken.reserve(fields.size());
  for (std::size_t index = 0; index < fields.size(); ++index) {
    taken.push_back(shaped_as(batch, index, fields[index]).release());
    tensors.emplace_back(&taken.back()->managed);
  }
  const std::vector<std::byte*> memory = batch.take();  // last: nothing after this may fail
  for (std::size_t index = 0; index < fields.size(); ++index) {
    taken[index]->pool = pool;
    taken[index]->bytes = loader.field_bytes(index);
    taken[index]->memory = memory[index];
    taken[index]->managed.tensor.data = memory[index];
  }
  return tensors;
}

}  // namespace unidle::capi
