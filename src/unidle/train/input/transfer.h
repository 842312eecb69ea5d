// Moves a loader's batch to tensors on the device.
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

/// Allocates page-locked slots, for asynchronous copies to a GPU. REQUIRES: a CUDA device. Not thread-safe.
class PinnedAllocator : public data::SlotAllocator {
 public:
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) override;

 private:
  std::map<std::byte*, at::Tensor> blocks_;
};

/// Copies batches unchanged (a picture is transferred as u8) into a ring of fixed device buffers, so that captured work
/// can read them. With `overlapped` the copies run on a stream of their own while the device computes; events keep both
/// in order. Keeps a batch's slot until the device has read it. Must be destroyed before the loader. Not thread-safe.
class Transfer {
 public:
  struct Options {
    at::Device device = at::kCPU;
    bool non_blocking = false;
    bool overlapped = false;  // for non_blocking copies from page-locked slots
    std::size_t places = 0;   // number of buffers; 0, only on a CPU: fields are views into the batch
  };
  Transfer(const data::Source& source, const data::Loader& loader, const Options& options);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// The fields with the types of the source, on the device; valid for as many calls as there are buffers, at least
  /// one.
  const std::vector<at::Tensor>& move(data::Batch batch);
  /// Call when all work that reads the batches moved so far is queued: their buffers are free once it is done.
  void consumed();
  /// Waits until at most one batch is still being copied; the loader may then reuse the others' slots. Returns whether
  /// it had to wait.
  bool settle();

 private:
  struct Place {
    explicit Place(at::DeviceType type) : copied(type), free(type) {}
    std::vector<at::Tensor> memory;  // one per field: as large as the largest batch
    std::vector<at::Tensor> fields;  // of the current batch, views of that memory
    c10::Event copied;               // on a GPU
    c10::Event free;
    bool in_use = false;
  };
  Place& next_place();
  void copy(const data::Batch& batch, Place& place);
  /// Records the event on the compute stream.
  void free(Place& place);
  bool on_gpu() const { return !options_.device.is_cpu(); }

  std::vector<data::Field> fields_;
  Options options_;
  std::optional<c10::Stream> side_;  // when copies overlap
  std::vector<Place> places_;
  std::size_t next_ = 0;
  std::optional<data::Batch> current_;  // backs the views in `views_`
  std::vector<at::Tensor> views_;
  struct InFlight {
    data::Batch batch;
    const c10::Event* copied;
  };
  std::deque<InFlight> in_flight_;  // on a GPU: batches whose copy may still be running
};

/// A view of a field of the batch, valid as long as the batch. `ragged` fields have the batch's extent.
at::Tensor field_view(const data::Batch& batch, const data::Field& field, std::size_t index);

/// u8 [n, h, w, c] -> float [n, c, h, w] in 0..1. Channels-last keeps the byte order and needs no copy.
at::Tensor picture_to_float(const at::Tensor& picture, bool channels_last);

}  // namespace unidle::train
