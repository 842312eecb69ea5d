// Orders of an epoch other than each item once: by weight, or with groups apart. Pure functions of (seed, epoch,
// index), as the loader's own order, so that nothing is kept and a stream may begin anywhere.
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
    std::uint64_t seed;  // that what is random about this sample of it comes from
  };

  virtual ~Order() = default;
  /// That an epoch has.
  virtual std::int64_t items() const = 0;
  /// How many items that the source must have.
  virtual std::int64_t source_items() const = 0;
  /// So many items that follow each other are one rank's, and one batch.
  virtual std::int64_t block() const { return 1; }
  virtual Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const = 0;

  /// Items of the source that follow each other.
  struct Run {
    std::int64_t begin;
    std::int64_t end;
  };
  /// Of an order that goes through the source run by run: how many items a run has. 0: this one does not.
  virtual std::int64_t run() const { return 0; }
  /// How many runs are gone through at a time.
  virtual std::int64_t window() const { return 0; }
  /// The run that comes after `number` others of the epoch.
  virtual Run run_at(std::uint64_t, std::int64_t, std::int64_t) const { return {0, 0}; }
};

/// Each place of the order is drawn by itself, an item as often as its weight says; an epoch has as many places as
/// there are items. What is random about an item is drawn anew at each of its places. Throws kUsage for weights that
/// are negative, not finite, or all zero.
class WeightedOrder final : public Order {
 public:
  explicit WeightedOrder(std::span<const double> weights);

  std::int64_t items() const override { return source_items(); }
  std::int64_t source_items() const override { return static_cast<std::int64_t>(sums_.size()); }
  Place at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const override;

 private:
  std::vector<double> sums_;  // of the weights up to each item
};

/// Batches of `batch` items that are all of one group. An epoch has each item of a group once, in an order of its own
/// unless `shuffle` is false; what fills no batch at the end of a group is left out with `drop_last`, and filled up
/// with the first ones of the group's order otherwise. Then the batches are shuffled. `groups` has the number of each
/// item's group, from 0; groups without items are passed over. Throws kUsage for other numbers.
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
  std::vector<std::int64_t> first_member_;  // of each group, and the end
  std::vector<std::int64_t> first_batch_;   // likewise
};

}  // namespace unidle::data
