// Maps samples, items and batches to each other by arithmetic, without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unidle/data/loader.h"

namespace unidle::data::detail {

/// The stream of one rank. "Position" p is the rank's p-th item from the start, over all epochs; "sample" t is its t-th
/// sample; item p has the samples starting at p * samples_per_item. The first epoch may be partial.
class Plan {
 public:
  /// Throws kUsage for options that do not fit the source.
  Plan(const Source& source, const LoaderOptions& options);

  struct Item {
    std::int64_t epoch;
    std::int64_t index;  // in the epoch's order, which all ranks share
  };
  Item item_at(std::int64_t position) const;
  struct Run {
    std::int64_t epoch;
    std::size_t count;
  };
  /// Writes the indices of the items from `position` on that are in its epoch: at least one, at most indices.size().
  /// Uses far fewer divisions than item_at(). REQUIRES: indices is not empty.
  Run items_at(std::int64_t position, std::span<std::int64_t> indices) const;

  std::int64_t batch() const { return batch_; }
  std::int64_t samples_per_item() const { return per_item_; }
  /// Per epoch, of all ranks and of this one.
  std::int64_t items() const { return items_; }
  std::int64_t share() const { return epoch_items_; }
  std::int64_t samples_of_source() const { return items_ * per_item_; }
  /// Samples of the first item that were delivered before the start.
  std::int64_t lead() const { return lead_; }

  std::int64_t first_sample(std::int64_t batch_index) const;
  std::int64_t end_sample(std::int64_t batch_index) const;
  std::int64_t samples(std::int64_t batch_index) const { return end_sample(batch_index) - first_sample(batch_index); }
  /// The first item with a sample in the batch, and the end of these items.
  std::int64_t begin_position(std::int64_t batch_index) const { return first_sample(batch_index) / per_item_; }
  std::int64_t end_position(std::int64_t batch_index) const { return (end_sample(batch_index) - 1) / per_item_ + 1; }
  /// The batch of a sample. Samples that were dropped or already delivered map to the nearest batch of their epoch.
  std::int64_t batch_of(std::int64_t sample) const;
  /// The batches that contain samples of an item.
  std::int64_t first_batch(std::int64_t position) const { return batch_of(position * per_item_); }
  std::int64_t last_batch(std::int64_t position) const { return batch_of((position + 1) * per_item_ - 1); }
  /// The maximum number of batches after its first one that an item extends into.
  std::int64_t straddle() const;

  std::int64_t epoch_of_batch(std::int64_t batch_index) const;
  /// Samples of the batch's epoch before it, on all ranks.
  std::int64_t epoch_offset(std::int64_t batch_index) const;
  /// In a whole epoch; 0 when batches span epochs.
  std::int64_t batches_per_epoch() const { return per_epoch_; }
  /// In the epoch that the stream starts in.
  std::int64_t batches_in_first_epoch() const { return head_; }

  /// A unit of work: the items [begin, end), all in one batch if an item is one sample. May be empty.
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  Range unit(std::int64_t number) const;
  /// Where the timing of a unit is recorded: `place` in the earliest batch it has samples in.
  std::int64_t timing_place(std::int64_t batch_index, std::int64_t position) const;
  std::int64_t timings(std::int64_t batch_index) const;
  std::int64_t most_timings() const;

 private:
  std::int64_t epoch_start(std::int64_t epoch) const;  // epochs count from the first one here
  std::int64_t epoch_of_sample(std::int64_t sample) const;
  std::int64_t batches_in(std::int64_t samples) const;
  std::int64_t begin_timing(std::int64_t batch_index) const;

  std::int64_t batch_;
  std::int64_t per_item_;
  std::int64_t grain_;
  std::int64_t items_;  // per epoch
  std::int64_t block_;  // this many consecutive items belong to one rank
  std::int64_t rank_;
  std::int64_t world_;
  EpochEnd epoch_end_;
  std::int64_t first_epoch_;
  std::int64_t base_;         // item in the first epoch's order where the ranks start
  std::int64_t lead_;         // in samples
  std::int64_t first_items_;  // of this rank in the first epoch
  std::int64_t epoch_items_;  // of this rank in each later one
  std::int64_t head_ = 0;     // batches in the first epoch
  std::int64_t per_epoch_ = 0;
};

}  // namespace unidle::data::detail
