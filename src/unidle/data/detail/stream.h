// Which item of the source stands at each place of a rank's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unidle/data/detail/plan.h"
#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// Positions are those of the plan. Thread-safe.
struct Stream {
  const Source& source;
  const LoaderOptions& options;
  const Plan& plan;

  ItemRequest request_at(std::int64_t position) const { return request_of(plan.item_at(position)); }
  ItemRequest request_of(const Plan::Item& item) const;
  /// Of the items of a unit; `requests` has as many.
  void requests_of(Plan::Range unit, std::span<ItemRequest> requests) const;
  /// The first extent of a ragged field in a batch: of the longest item that is due there.
  std::int64_t extent(std::int64_t batch_index, std::size_t field) const;
  /// Whether read_ahead() has anything to tell.
  bool reads_ahead() const { return options.order != nullptr && options.order->run() != 0; }
  /// Tells the source what comes a window further on, when the position is the first of a run of the order. REQUIRES:
  /// reads_ahead().
  void read_ahead(std::int64_t position) const;
  /// Tells the source of the items of a unit, which will be read.
  void expect(std::int64_t unit_number) const;
};

}  // namespace unidle::data::detail
