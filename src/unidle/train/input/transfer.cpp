#include "unidle/train/input/transfer.h"

#include <c10/core/StreamGuard.h>
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

/// Loaders have at least two slots: with one batch in flight and one being filled there is no deadlock.
constexpr std::size_t kInFlightAtMost = 1;

}  // namespace

std::byte* PinnedAllocator::allocate(std::size_t bytes) {
  at::Tensor block = at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte).pinned_memory(true));
  auto* memory = reinterpret_cast<std::byte*>(block.data_ptr());
  blocks_.emplace(memory, std::move(block));
  return memory;
}

void PinnedAllocator::release(std::byte* memory, std::size_t) { blocks_.erase(memory); }

Transfer::Transfer(const data::Source& source, const data::Loader& loader, const Options& options)
    : fields_(source.fields()), options_(options) {
  if (options_.overlapped) {
    const c10::impl::VirtualGuardImpl guard(options_.device.type());
    // Other work is not queued on high-priority streams.
    side_ = guard.getStreamFromGlobalPool(options_.device, /*isHighPriority=*/true);
  }
  places_.reserve(options_.places);
  for (std::size_t i = 0; i < options_.places; ++i) {
    Place& place = places_.emplace_back(options_.device.type());
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      place.memory.push_back(at::empty({static_cast<std::int64_t>(loader.field_bytes(field))},
                                       at::TensorOptions(at::kByte).device(options_.device)));
    }
    free(place);  // earlier users of this memory may still be running
  }
}

Transfer::~Transfer() {
  for (InFlight& entry : in_flight_) {
    entry.copied->synchronize();
  }
}

const std::vector<at::Tensor>& Transfer::move(data::Batch batch) {
  if (places_.empty()) {
    views_.clear();
    for (std::size_t index = 0; index < fields_.size(); ++index) {
      views_.push_back(field_view(batch, fields_[index], index));
    }
    current_.emplace(std::move(batch));
    return views_;
  }
  Place& place = next_place();
  {
    const c10::OptionalStreamGuard guard(side_);
    copy(batch, place);
  }
  if (on_gpu()) {
    const c10::Stream compute = c10::impl::VirtualGuardImpl(options_.device.type()).getStream(options_.device);
    place.copied.record(side_.value_or(compute));
    if (side_) {
      place.copied.block(compute);
    }
    in_flight_.push_back({std::move(batch), &place.copied});
  }
  return place.fields;
}

Transfer::Place& Transfer::next_place() {
  Place& place = places_[next_++ % places_.size()];
  if (place.in_use) {
    free(place);
  }
  if (side_) {
    place.free.block(*side_);
  }
  place.in_use = true;
  return place;
}

void Transfer::copy(const data::Batch& batch, Place& place) {
  place.fields.resize(fields_.size());
  for (std::size_t index = 0; index < fields_.size(); ++index) {
    const at::Tensor from = field_view(batch, fields_[index], index);
    at::Tensor& to = place.fields[index];
    if (!to.defined() || to.sizes() != from.sizes()) {
      const auto bytes = static_cast<std::int64_t>(from.nbytes());
      to = place.memory[index].narrow(0, 0, bytes).view(from.scalar_type()).view(from.sizes());
    }
    to.copy_(from, options_.non_blocking);
  }
}

void Transfer::consumed() {
  for (Place& place : places_) {
    if (place.in_use) {
      free(place);
    }
  }
}

void Transfer::free(Place& place) {
  if (side_) {
    place.free.record(c10::impl::VirtualGuardImpl(options_.device.type()).getStream(options_.device));
  }
  place.in_use = false;
}

bool Transfer::settle() {
  bool waited = false;
  while (!in_flight_.empty()) {
    const c10::Event& copied = *in_flight_.front().copied;
    const bool done = copied.query();
    if (!done && in_flight_.size() <= kInFlightAtMost) {
      break;
    }
    if (!done) {
      copied.synchronize();
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
