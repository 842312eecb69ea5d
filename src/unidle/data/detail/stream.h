// Maps positions in a rank's stream to items of the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unidle/data/detail/plan.h"
#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// Positions are the plan's. Thread-safe.
struct Stream {
  const Source& source;
  const LoaderOptions& options;
  const Plan& plan;

  ItemRequest request_at(std::int64_t position) const { return request_of(plan.item_at(position)); }
  ItemRequest request_of(const Plan::Item& item) const;
  /// Fills `requests` with the items of a unit; both have the same size.
  void requests_of(Plan::Range unit, std::span<ItemRequest> requests) const;
  /// The first extent of a ragged field in a batch: that of its longest item.
  std::int64_t extent(std::int64_t batch_index, std::size_t field) const;
  /// True when read_ahead() has an effect.
  bool reads_ahead() const { return options.order != nullptr && options.order->run() != 0; }
  /// Announces the run one window ahead to the source when the position starts a run of the order. REQUIRES:
  /// reads_ahead().
  void read_ahead(std::int64_t position) const;
  /// Announces the items of a unit to the source.
  void expect(std::int64_t unit_number) const;
};

}  // namespace unidle::data::detail
