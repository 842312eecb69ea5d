// A whole data set in the device's memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// The numbers of another source's items instead of their data: a loader over it tells the order of that source, with
/// all that a loader does (shuffling, ranks, resuming). Thread-safe.
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
  /// Reads everything with `workers` threads. Throws kInput when the items are no plain rows (they differ from epoch to
  /// epoch, vary in length or are several samples each), kOutOfMemory when they do not fit, and what the source throws.
  DeviceRows(const data::Source& source, at::Device device, int workers);

  /// Those items of every field, in that order: [n, shape...]. `items`: int64 [n], on the device.
  std::vector<at::Tensor> select(const at::Tensor& items) const;
  std::uint64_t bytes() const;

 private:
  std::vector<at::Tensor> rows_;           // a field: [items, shape...]
  std::vector<at::ScalarType> row_types_;  // as the source has them
};

}  // namespace unidle::train
