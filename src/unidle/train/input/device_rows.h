// A whole data set in device memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Provides the item numbers of another source instead of its data: a loader over it gives the order of that source,
/// with shuffling, ranks and resuming. Thread-safe.
class ItemNumbers final : public data::Source {
 public:
  explicit ItemNumbers(const data::Source& source);

  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return items_; }
  std::int64_t samples_per_item() const override { return samples_per_item_; }
  std::int64_t grain() const override;
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override;
  std::uint64_t gather(std::span<const data::ItemRequest> requests, std::span<const data::Rows> fields) const override;

 private:
  std::vector<data::Field> fields_;  // one: "item", int64 {}
  std::int64_t items_;
  std::int64_t samples_per_item_;
};

/// All items of a source, read once. One thread.
class DeviceRows {
 public:
  /// Reads everything with `workers` threads. Throws kInput when the items are not fixed rows (they differ per epoch,
  /// vary in length or are several samples each), kOutOfMemory when they do not fit, and what the source throws.
  DeviceRows(const data::Source& source, at::Device device, int workers);

  /// These items of every field, in that order: [n, shape...]. `items`: int64 [n], on the device.
  std::vector<at::Tensor> select(const at::Tensor& items) const;
  std::uint64_t bytes() const;

 private:
  std::vector<at::Tensor> rows_;           // one per field: [items, shape...]
  std::vector<at::ScalarType> row_types_;  // the types of the source
};

}  // namespace unidle::train
