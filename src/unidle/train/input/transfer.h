// From a loader's batch to tensors on the device.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

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

/// Copies batches as they are (a picture crosses the bus as u8) into places of the device's memory, which are used in
/// turns and stay where they are, so that captured work can read them. With `overlapped` the copies run on a stream of
/// their own, beside what the device computes; events keep the two in order. Keeps a batch's slot until the device has
/// read it. Must die before the loader. Not thread-safe.
class Transfer {
 public:
  struct Options {
    at::Device device = at::kCPU;
    bool non_blocking = false;
    bool overlapped = false;  // of non_blocking copies from page-locked slots
    std::size_t places = 0;   // 0, on a CPU alone: fields are views into the batch
  };
  Transfer(const data::Source& source, const data::Loader& loader, const Options& options);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// The fields as the source has them, on the device; valid until as many calls as there are places, at least one.
  const std::vector<at::Tensor>& move(data::Batch batch);
  /// All that reads the batches moved so far is queued: their places are free once it is done.
  void consumed();
  /// Waits until at most one batch is still being copied, whose slot is then free for the loader. Whether it had to.
  bool settle();

 private:
  struct Place {
    explicit Place(at::DeviceType type) : copied(type), free(type) {}
    std::vector<at::Tensor> memory;  // a field: the bytes of the largest batch
    std::vector<at::Tensor> fields;  // of the batch that it holds, in that memory
    c10::Event copied;               // on a GPU
    c10::Event free;
    bool in_use = false;
  };
  Place& next_place();
  void copy(const data::Batch& batch, Place& place);
  /// Records on the stream that computes.
  void free(Place& place);
  bool on_gpu() const { return !options_.device.is_cpu(); }

  std::vector<data::Field> fields_;
  Options options_;
  std::optional<c10::Stream> side_;  // where copies overlap
  std::vector<Place> places_;
  std::size_t next_ = 0;
  std::optional<data::Batch> current_;  // what the views of `views_` lie in
  std::vector<at::Tensor> views_;
  struct InFlight {
    data::Batch batch;
    const c10::Event* copied;
  };
  std::deque<InFlight> in_flight_;  // on a GPU: batches whose copy may still run
};

/// A field of the batch as it lies there: a view, valid as long as the batch. `ragged` fields have the batch's extent.
at::Tensor field_view(const data::Batch& batch, const data::Field& field, std::size_t index);

/// u8 [n, h, w, c] -> float [n, c, h, w] in 0..1. Channels-last keeps the bytes' order and so copies nothing around.
at::Tensor picture_to_float(const at::Tensor& picture, bool channels_last);

}  // namespace unidle::train
