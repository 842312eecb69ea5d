// Provides batches of a source as tensors on the device.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "unidle/data/loader.h"
#include "unidle/train/input/device_rows.h"
#include "unidle/train/input/transfer.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct InputOptions {
  data::LoaderOptions loader;  // its allocator is set here
  bool pin_memory = false;     // no effect on a CPU
  bool non_blocking = false;   // no effect on a CPU
  bool channels_last = false;
  bool on_device = false;  // the source is read once, and only item numbers are transferred
  /// Batches are in fixed memory: a ring of twice this many buffers. 0, on a CPU: in any memory.
  std::int64_t batches_of_step = 0;
};
/// The options of the configuration; the caller sets the loader's batch and start.
InputOptions input_options(const Config& config);

/// Yields the same batches in the same order whatever the options other than the loader's. One thread.
class Input {
 public:
  /// `source` must outlive this. Throws what Loader and DeviceRows throw.
  Input(const data::Source& source, std::vector<FieldUse> uses, at::Device device, const InputOptions& options);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  data::Batch fetch() { return loader_->next(); }
  /// The fetched batch on the device, in its transferred form; valid until the next call, or for batches_of_step calls.
  const std::vector<at::Tensor>& move(data::Batch batch) { return transfer_->move(std::move(batch)); }
  /// The fields of a moved batch. Runs on the device only.
  std::vector<at::Tensor> fields(const std::vector<at::Tensor>& moved) const;
  /// Call when all work that reads the batches moved so far is queued.
  void consumed() { transfer_->consumed(); }
  /// After move(): waits until at most one batch is still being copied. Returns whether it had to wait.
  bool settle() { return transfer_->settle(); }

  const data::Loader& loader() const { return *loader_; }
  bool pinned() const { return pinned_ != nullptr; }
  bool non_blocking() const { return non_blocking_; }
  bool on_device() const { return rows_.has_value(); }

 private:
  std::vector<FieldUse> uses_;
  bool channels_last_;
  bool non_blocking_;
  std::optional<DeviceRows> rows_;
  std::optional<ItemNumbers> numbers_;
  std::unique_ptr<PinnedAllocator> pinned_;  // outlives the loader
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace unidle::train
