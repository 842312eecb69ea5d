// Batches of a source as tensors on the device, however they get there.
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
  data::LoaderOptions loader;  // its allocator is chosen here
  bool pin_memory = false;     // of no effect on a CPU
  bool non_blocking = false;   // of no effect on a CPU
  bool channels_last = false;
  bool on_device = false;  // the source is read once, and only item numbers cross the bus
  /// Batches lie in memory that stays where it is: in twice so many places, used in turns. 0: on a CPU, wherever they
  /// are.
  std::int64_t batches_of_step = 0;
};
/// The options that the configuration asks for; the loader's batch and start are the caller's.
InputOptions input_options(const Config& config);

/// The same batches in the same order with any options but the loader's. One thread.
class Input {
 public:
  /// `source` must outlive this. Throws what Loader and DeviceRows throw.
  Input(const data::Source& source, std::vector<FieldUse> uses, at::Device device, const InputOptions& options);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  data::Batch fetch() { return loader_->next(); }
  /// The fetched batch on the device, as it crosses the bus; valid until the next call, or for as many as
  /// batches_of_step says.
  const std::vector<at::Tensor>& move(data::Batch batch) { return transfer_->move(std::move(batch)); }
  /// The fields of a batch that was moved. Work of the device alone.
  std::vector<at::Tensor> fields(const std::vector<at::Tensor>& moved) const;
  /// All that reads the batches moved so far is queued.
  void consumed() { transfer_->consumed(); }
  /// After move(): waits until at most one batch is still being copied. Whether it had to.
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
