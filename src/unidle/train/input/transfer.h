// From a loader's batch to tensors on the device.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "unidle/data/loader.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Page-locked slots, for asynchronous copies to a GPU. REQUIRES: a CUDA device. Not thread-safe.
class PinnedAllocator : public data::SlotAllocator {
 public:
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) override;

 private:
  std::map<std::byte*, at::Tensor> blocks_;
};

/// Copies bytes, not floats: a picture crosses the bus as u8 and becomes float on the device.
/// Keeps a batch's slot until the device has read it. Must die before the loader. Not thread-safe.
class Transfer {
 public:
  Transfer(const data::Source& source, std::vector<FieldUse> uses, at::Device device, bool channels_last,
           bool non_blocking);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// The fields on the device. On a CPU raw fields are views into the batch, valid until the next call.
  std::vector<at::Tensor> move(data::Batch batch);
  /// Waits until at most one batch is still being copied, whose slot is then free for the loader. Whether it had to.
  bool settle();
  /// Bytes of the last batch.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void keep(data::Batch batch);

  std::vector<data::Field> fields_;
  std::vector<FieldUse> uses_;
  at::Device device_;
  bool channels_last_;
  bool non_blocking_;
  std::uint64_t bytes_ = 0;
  std::optional<data::Batch> current_;  // on a CPU
  struct InFlight;
  std::deque<InFlight> in_flight_;  // on a GPU: batches whose copy may still run
};

/// A field of the batch as it lies there: a view, valid as long as the batch. `ragged` fields have the batch's extent.
at::Tensor field_view(const data::Batch& batch, const data::Field& field, std::size_t index);

/// u8 [n, h, w, c] -> float [n, c, h, w] in 0..1. Channels-last keeps the bytes' order and so copies nothing around.
at::Tensor picture_to_float(const at::Tensor& picture, bool channels_last);

}  // namespace unidle::train
