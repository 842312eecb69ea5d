// A shuffled order with sequential reads: run by run.
#pragma once

#include <cstdint>

#include "unidle/data/order.h"

namespace unidle::data {

/// Splits the source into runs of `run` consecutive items (the last one may be shorter). An epoch shuffles the runs,
/// takes `window` of them at a time, and shuffles all items of a window. Each item comes once.
///
/// Quality of the shuffle: an item may come anywhere in the epoch, but the other items of its run are in the same
/// window of `window * run` places. A batch mixes items of about `window` runs, where a full shuffle mixes all runs.
/// With a window of all runs it is a full shuffle.
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
  /// Position of the short run in the epoch; past the end when there is none.
  std::int64_t place_of_rest(std::uint64_t seed, std::int64_t epoch) const;
  /// Number of items in the runs before it.
  std::int64_t start(std::int64_t number, std::int64_t place_of_rest) const;

  std::int64_t items_;
  std::int64_t run_;
  std::int64_t window_;
  std::int64_t whole_runs_;
  std::int64_t rest_;  // items of the short run
  std::int64_t runs_;
};

}  // namespace unidle::data
