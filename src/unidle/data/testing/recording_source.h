// A source for tests of which samples a loader delivers in which batches.
#pragma once

#include <compare>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"

namespace unidle::data::testing {

/// Each sample contains its epoch, item and part of the item; items with one sample can be made several at once.
class RecordingSource : public Source {
 public:
  RecordingSource(std::int64_t items, std::int64_t per_item, std::int64_t grain = 1)
      : items_(items), per_item_(per_item), grain_(grain) {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return items_; }
  std::int64_t samples_per_item() const override { return per_item_; }
  std::int64_t grain() const override { return grain_; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override {
    if (damaged.contains(request.item)) {
      throw Error(ErrorCode::kInput, "item " + std::to_string(request.item), "is damaged");
    }
    for (std::size_t part = 0; part < samples.size(); ++part) {
      const std::int64_t told[3] = {request.epoch, request.item, static_cast<std::int64_t>(part)};
      std::memcpy(samples[part][0].data(), told, sizeof told);
    }
    return 1;
  }

  std::set<std::int64_t> damaged;

 private:
  std::vector<Field> fields_{{"told", DType::kI64, {3}}};
  std::int64_t items_;
  std::int64_t per_item_;
  std::int64_t grain_;
};

struct RecordedSample {
  std::int64_t epoch;
  std::int64_t item;
  std::int64_t part;
  auto operator<=>(const RecordedSample&) const = default;
};
using RecordedSamples = std::vector<RecordedSample>;

inline RecordedSamples told_samples(const Batch& batch) {
  RecordedSamples samples(static_cast<std::size_t>(batch.samples()));
  std::memcpy(samples.data(), batch.field(0), samples.size() * sizeof(RecordedSample));
  return samples;
}

}  // namespace unidle::data::testing
