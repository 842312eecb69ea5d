#include "unidle/train/input/transfer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

namespace unidle::train {

namespace {

at::ScalarType scalar_type(data::DType dtype) {
  switch (dtype) {
    case data::DType::kBool: return at::kBool;
    case data::DType::kU8: return at::kByte;
    case data::DType::kI8: return at::kChar;
    case data::DType::kU16: return at::kUInt16;
    case data::DType::kI16: return at::kShort;
    case data::DType::kU32: return at::kUInt32;
    case data::DType::kI32: return at::kInt;
    case data::DType::kU64: return at::kUInt64;
    case data::DType::kI64: return at::kLong;
    case data::DType::kF16: return at::kHalf;
    case data::DType::kBF16: return at::kBFloat16;
    case data::DType::kF32: return at::kFloat;
    case data::DType::kF64: return at::kDouble;
  }
  return at::kByte;
}

/// Loaders give at least two slots: with one batch in flight and one being filled nothing waits for itself.
constexpr std::size_t kInFlightAtMost = 1;

}  // namespace

std::byte* PinnedAllocator::allocate(std::size_t bytes) {
  at::Tensor block = at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte).pinned_memory(true));
  auto* memory = reinterpret_cast<std::byte*>(block.data_ptr());
  blocks_.emplace(memory, std::move(block));
  return memory;
}

void PinnedAllocator::release(std::byte* memory, std::size_t) { blocks_.erase(memory); }

struct Transfer::InFlight {
  data::Batch batch;
  c10::Event copied;
};

Transfer::Transfer(const data::Source& source, std::vector<FieldUse> uses, at::Device device, bool channels_last,
                   bool non_blocking)
    : fields_(source.fields()),
      uses_(std::move(uses)),
      device_(device),
      channels_last_(channels_last),
      non_blocking_(non_blocking) {}

Transfer::~Transfer() {
  for (InFlight& entry : in_flight_) {
    entry.copied.synchronize();
  }
}

std::vector<at::Tensor> Transfer::move(data::Batch batch) {
  bytes_ = 0;
  std::vector<at::Tensor> moved;
  moved.reserve(fields_.size());
  for (std::size_t index = 0; index < fields_.size(); ++index) {
    at::Tensor tensor = field_view(batch, fields_[index], index);
    bytes_ += tensor.nbytes();
    if (!device_.is_cpu()) {
      tensor = tensor.to(device_, non_blocking_);
    }
    moved.push_back(uses_[index] == FieldUse::kPicture ? picture_to_float(tensor, channels_last_) : tensor);
  }
  keep(std::move(batch));
  return moved;
}

void Transfer::keep(data::Batch batch) {
  if (device_.is_cpu()) {
    current_.emplace(std::move(batch));
    return;
  }
  c10::Event copied(device_.type());
  copied.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  in_flight_.push_back({std::move(batch), std::move(copied)});
}

bool Transfer::settle() {
  bool waited = false;
  while (!in_flight_.empty()) {
    const bool done = in_flight_.front().copied.query();
    if (!done && in_flight_.size() <= kInFlightAtMost) {
      break;
    }
    if (!done) {
      in_flight_.front().copied.synchronize();
      waited = true;
    }
    in_flight_.pop_front();
  }
  return waited;
}

at::Tensor field_view(const data::Batch& batch, const data::Field& field, std::size_t index) {
  at::DimVector shape = {batch.samples()};
  shape.append(field.shape.begin(), field.shape.end());
  if (field.ragged) {
    shape[1] = batch.extent(index);
  }
  return at::from_blob(batch.field(index), shape, at::TensorOptions(scalar_type(field.dtype)));
}

at::Tensor picture_to_float(const at::Tensor& picture, bool channels_last) {
  const at::Tensor planes = picture.permute({0, 3, 1, 2});
  const auto format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return planes.to(at::kFloat, /*non_blocking=*/false, /*copy=*/false, format).div_(255);
}

}  // namespace unidle::train
