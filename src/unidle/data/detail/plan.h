// Which samples, items and batches belong together: arithmetic, with nothing to keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// The stream of one rank. "Position" p is the rank's p-th item from the start, over all epochs; "sample" t is its t-th
/// sample, where item p has the samples p * samples_per_item and following. The first epoch may be the rest of one.
class Plan {
 public:
  /// Throws kUsage for options that make no sense with the source.
  Plan(const Source& source, const LoaderOptions& options);

  struct Item {
    std::int64_t epoch;
    std::int64_t index;  // in the order of the epoch, which all ranks share
  };
  Item item_at(std::int64_t position) const;
  struct Run {
    std::int64_t epoch;
    std::size_t count;
  };
  /// The items at `position` and following, as many as are of its epoch: at least one, at most indices.size(). Their
  /// indices are written, in far fewer divisions than item_at() would need.
  /// REQUIRES: indices is not empty.
  Run items_at(std::int64_t position, std::span<std::int64_t> indices) const;

  std::int64_t batch() const { return batch_; }
  std::int64_t samples_per_item() const { return per_item_; }
  /// In an epoch, of all ranks and of this one.
  std::int64_t items() const { return items_; }
  std::int64_t share() const { return epoch_items_; }
  std::int64_t samples_of_source() const { return items_ * per_item_; }
  /// Samples of the first item that were delivered before the start.
  std::int64_t lead() const { return lead_; }

  std::int64_t first_sample(std::int64_t batch_index) const;
  std::int64_t end_sample(std::int64_t batch_index) const;
  std::int64_t samples(std::int64_t batch_index) const { return end_sample(batch_index) - first_sample(batch_index); }
  /// The first item that has a sample in the batch, and the one after the last.
  std::int64_t begin_position(std::int64_t batch_index) const { return first_sample(batch_index) / per_item_; }
  std::int64_t end_position(std::int64_t batch_index) const { return (end_sample(batch_index) - 1) / per_item_ + 1; }
  /// The batch of a sample. One that is dropped or was delivered before counts to the nearest batch of its epoch.
  std::int64_t batch_of(std::int64_t sample) const;
  /// The batches that an item reaches.
  std::int64_t first_batch(std::int64_t position) const { return batch_of(position * per_item_); }
  std::int64_t last_batch(std::int64_t position) const { return batch_of((position + 1) * per_item_ - 1); }
  /// How many batches beyond its first one an item can reach.
  std::int64_t straddle() const;

  std::int64_t epoch_of_batch(std::int64_t batch_index) const;
  /// Samples of the batch's epoch that come before it, on all ranks together.
  std::int64_t epoch_offset(std::int64_t batch_index) const;
  /// In a whole epoch; 0 where batches span epochs.
  std::int64_t batches_per_epoch() const { return per_epoch_; }
  /// In the epoch that the stream starts in.
  std::int64_t batches_in_first_epoch() const { return head_; }

  /// What a worker takes at once: the items [begin, end), all of one batch if an item is one sample. May be empty.
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  Range unit(std::int64_t number) const;
  /// Where the time of a unit is told: `place` in the earliest batch that it reaches.
  std::int64_t timing_place(std::int64_t batch_index, std::int64_t position) const;
  std::int64_t timings(std::int64_t batch_index) const;
  std::int64_t most_timings() const;

 private:
  std::int64_t epoch_start(std::int64_t epoch) const;  // epochs count from the first here
  std::int64_t epoch_of_sample(std::int64_t sample) const;
  std::int64_t batches_in(std::int64_t samples) const;
  std::int64_t begin_timing(std::int64_t batch_index) const;

  std::int64_t batch_;
  std::int64_t per_item_;
  std::int64_t grain_;
  std::int64_t items_;  // in an epoch
  std::int64_t block_;  // so many that follow each other are one rank's
  std::int64_t rank_;
  std::int64_t world_;
  EpochEnd epoch_end_;
  std::int64_t first_epoch_;
  std::int64_t base_;         // item of the first epoch's order that the ranks start at
  std::int64_t lead_;         // samples
  std::int64_t first_items_;  // of this rank in the first epoch
  std::int64_t epoch_items_;  // of this rank in each later one
  std::int64_t head_ = 0;     // batches in the first epoch
  std::int64_t per_epoch_ = 0;
};

}  // namespace unidle::data::detail
