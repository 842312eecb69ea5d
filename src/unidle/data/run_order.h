// A shuffled order that storage can be read in: run by run.
#pragma once

#include <cstdint>

#include "unidle/data/order.h"

namespace unidle::data {

/// The source is cut into runs of `run` items that follow each other (the last one may be shorter). An epoch takes the
/// runs in a shuffled order, `window` of them at a time, and shuffles all items of a window. Each item comes once.
///
/// How well that shuffles: an item may come anywhere in the epoch, but all items of its run come with it, within the
/// `window * run` places of one window; a batch has items of about `window` runs, where an order of the whole epoch has
/// them of all. With a window of all runs it is such an order.
class RunOrder final : public Order {
 public:
  /// Throws kUsage for numbers below 1.
  RunOrder(std::int64_t items, std::int64_t run, std::int64_t window);

  std::int64_t items() const override { return items_; }
  std::int64_t source_items() const override { return items_; }
  Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const override;
  std::int64_t run() const override { return run_; }
  std::int64_t window() const override { return window_; }
  Run run_at(std::uint64_t seed, std::int64_t epoch, std::int64_t number) const override;

 private:
  /// Where the short run stands in the epoch; beyond all where there is none.
  std::int64_t place_of_rest(std::uint64_t seed, std::int64_t epoch) const;
  /// Items of the runs that come before it.
  std::int64_t start(std::int64_t number, std::int64_t place_of_rest) const;

  std::int64_t items_;
  std::int64_t run_;
  std::int64_t window_;
  std::int64_t whole_runs_;
  std::int64_t rest_;  // items of the short run
  std::int64_t runs_;
};

}  // namespace unidle::data
