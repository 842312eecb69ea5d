// A selection of a source's items, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/source.h"

namespace unidle::data {

/// Item i is item `items[i]` of `source`, which must outlive this. A repeated item is identical within an epoch. Throws
/// kUsage for items that the source does not have. Thread-safe.
class Subset final : public Source {
 public:
  Subset(const Source& source, std::vector<std::int64_t> items);

  const std::vector<Field>& fields() const override { return source_.fields(); }
  std::int64_t items() const override { return static_cast<std::int64_t>(items_.size()); }
  std::int64_t samples_per_item() const override { return source_.samples_per_item(); }
  std::int64_t grain() const override { return source_.grain(); }
  bool same_every_epoch() const override { return source_.same_every_epoch(); }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;
  std::int64_t extent(std::int64_t item, std::size_t field) const override;
  std::int64_t look_ahead() const override { return source_.look_ahead(); }
  void expect(std::span<const ItemRequest> requests) const override;
  /// When the items follow the order of the source's runs: how many fall into a run on average. Otherwise 0.
  std::int64_t run() const override { return run_; }
  void will_need(std::int64_t begin, std::int64_t end) const override;
  std::string describe() const override { return source_.describe(); }
  std::string value_name(std::int64_t item, std::size_t field, std::int64_t value) const override {
    return source_.value_name(original(item), field, value);
  }

 private:
  std::int64_t original(std::int64_t item) const { return items_[static_cast<std::size_t>(item)]; }
  std::int64_t average_run() const;

  const Source& source_;
  std::vector<std::int64_t> items_;
  std::int64_t run_;
};

}  // namespace unidle::data
