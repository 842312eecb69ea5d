// Other orders of an epoch: by weight, or by group. Like the default order, pure functions of (seed, epoch, index), so
// nothing is stored and a stream may start anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace unidle::data {

/// Thread-safe.
class Order {
 public:
  struct Place {
    std::int64_t item;   // of the source
    std::uint64_t seed;  // seed for the randomness of this sample
  };

  virtual ~Order() = default;
  /// Items in an epoch.
  virtual std::int64_t items() const = 0;
  /// Number of items that the source must have.
  virtual std::int64_t source_items() const = 0;
  /// This many consecutive items go to one rank and one batch.
  virtual std::int64_t block() const { return 1; }
  virtual Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const = 0;

  /// Consecutive items of the source.
  struct Run {
    std::int64_t begin;
    std::int64_t end;
  };
  /// Items per run, if the order reads the source run by run; otherwise 0.
  virtual std::int64_t run() const { return 0; }
  /// Number of runs that are mixed together.
  virtual std::int64_t window() const { return 0; }
  /// The run at position `number` of the epoch.
  virtual Run run_at(std::uint64_t, std::int64_t, std::int64_t) const { return {0, 0}; }
};

/// Draws each place of the order independently, with probability proportional to the item's weight; an epoch has as
/// many places as items. Repeated items get different randomness at each place. Throws kUsage for weights that are
/// negative, not finite, or all zero.
class WeightedOrder final : public Order {
 public:
  explicit WeightedOrder(std::span<const double> weights);

  std::int64_t items() const override { return source_items(); }
  std::int64_t source_items() const override { return static_cast<std::int64_t>(sums_.size()); }
  Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const override;

 private:
  std::vector<double> sums_;  // cumulative weights
};

/// Batches of `batch` items from a single group. An epoch has each item of a group once, shuffled unless `shuffle` is
/// false; an incomplete last batch of a group is dropped with `drop_last`, otherwise filled with the first items of the
/// group's order. Then the batches are shuffled. `groups` holds each item's group number, from 0; empty groups are
/// skipped. Throws kUsage for invalid numbers.
class GroupedOrder final : public Order {
 public:
  GroupedOrder(std::span<const std::int64_t> groups, std::int64_t batch, bool shuffle, bool drop_last);

  std::int64_t items() const override { return first_batch_.back() * batch_; }
  std::int64_t source_items() const override { return static_cast<std::int64_t>(members_.size()); }
  std::int64_t block() const override { return batch_; }
  Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const override;

 private:
  std::int64_t batch_;
  bool shuffle_;
  std::vector<std::int64_t> members_;       // items, group by group
  std::vector<std::int64_t> first_member_;  // start of each group, and the end
  std::vector<std::int64_t> first_batch_;   // the same for batches
};

}  // namespace unidle::data
