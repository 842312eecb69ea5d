// A source for loader tests: each sample contains its request.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data::testing {

/// Field 0 contains the request, field 1 bytes derived from all of it.
class NumberSource : public Source {
 public:
  NumberSource(std::int64_t items, std::int64_t per_item) : items_(items), per_item_(per_item) {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return items_; }
  std::int64_t samples_per_item() const override { return per_item_; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override {
    reads_.fetch_add(1);
    if (before_read) {
      before_read(request);
    }
    EXPECT_EQ(static_cast<std::int64_t>(samples.size()), per_item_);
    for (std::size_t crop = 0; crop < samples.size(); ++crop) {
      EXPECT_EQ(samples[crop].size(), 2u);
      const std::int64_t told[3] = {request.epoch, request.item, static_cast<std::int64_t>(crop)};
      EXPECT_EQ(samples[crop][0].size(), sizeof told);
      std::memcpy(samples[crop][0].data(), told, sizeof told);
      CounterRandom random{request.seed, static_cast<std::uint64_t>(request.epoch),
                           static_cast<std::uint64_t>(request.item), crop};
      for (std::byte& byte : samples[crop][1]) {
        byte = static_cast<std::byte>(random.next());
      }
    }
    return 100;
  }

  std::int64_t look_ahead() const override { return ahead; }
  void expect(std::span<const ItemRequest> requests) const override {
    for (const ItemRequest& request : requests) {
      on_expect(request);
    }
  }

  int reads() const { return reads_.load(); }
  std::function<void(const ItemRequest&)> before_read;
  std::int64_t ahead = 0;
  std::function<void(const ItemRequest&)> on_expect;

 private:
  std::vector<Field> fields_{{"told", DType::kI64, {3}}, {"bytes", DType::kU8, {5, 7}}};
  std::int64_t items_;
  std::int64_t per_item_;
  mutable std::atomic<int> reads_{0};
};

inline constexpr std::size_t kToldBytes = 24;
inline constexpr std::size_t kDataBytes = 35;

/// The samples of a batch, both fields.
inline std::vector<std::string> samples_of(const Batch& batch) {
  std::vector<std::string> samples;
  for (std::int64_t row = 0; row < batch.samples(); ++row) {
    const auto at = static_cast<std::size_t>(row);
    samples.emplace_back(reinterpret_cast<const char*>(batch.field(0) + at * kToldBytes), kToldBytes);
    samples.back().append(reinterpret_cast<const char*>(batch.field(1) + at * kDataBytes), kDataBytes);
  }
  return samples;
}

inline std::vector<std::string> take(Loader& loader, int batches) {
  std::vector<std::string> samples;
  for (int i = 0; i < batches; ++i) {
    for (std::string& sample : samples_of(loader.next())) {
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

inline std::int64_t told(const std::string& sample, int which) {
  std::int64_t value;
  std::memcpy(&value, sample.data() + which * 8, 8);
  return value;
}

inline std::int64_t item_of(const std::string& sample) { return told(sample, 1); }

}  // namespace unidle::data::testing
