#include "unidle/data/detail/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "unidle/base/error.h"

namespace unidle::data::detail {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

[[noreturn]] void bad_option(std::string_view name, std::string_view expected, std::int64_t found) {
  throw Error(ErrorCode::kUsage, fmt::format("loader option {}", name), fmt::format("{}, found {}", expected, found));
}

void check(const Source& source, const LoaderOptions& options) {
  if (options.batch < 1 || options.batch > kMost) {
    bad_option("batch", fmt::format("expected 1 to {}", kMost), options.batch);
  }
  if (options.workers != kAutoWorkers && (options.workers < 0 || options.workers > 4096)) {
    bad_option("workers", fmt::format("expected 0 to 4096, or {} for as many as help", kAutoWorkers), options.workers);
  }
  if (options.prefetch < 1 || options.prefetch > 4096) {
    bad_option("prefetch", "expected 1 to 4096", options.prefetch);
  }
  if (options.max_bytes < 0) {
    bad_option("max_bytes", "expected 0 or more", options.max_bytes);
  }
  if (options.start_sample < 0) {
    bad_option("start_sample", "expected 0 or more", options.start_sample);
  }
  if (options.world < 1 || options.world > kMost) {
    bad_option("world", fmt::format("expected 1 to {}", kMost), options.world);
  }
  if (options.rank < 0 || options.rank >= options.world) {
    bad_option("rank", fmt::format("expected 0 to {}", options.world - 1), options.rank);
  }
  if (source.items() < 1) {
    throw Error(ErrorCode::kInput, "source", "has no items");
  }
  if (source.samples_per_item() < 1 || source.samples_per_item() > kMost) {
    throw Error(ErrorCode::kUsage, "source",
                fmt::format("samples per item: expected 1 to {}, found {}", kMost, source.samples_per_item()));
  }
}

void check_order(const Source& source, const LoaderOptions& options) {
  const Order& order = *options.order;
  if (order.source_items() != source.items() || source.samples_per_item() != 1) {
    throw Error(ErrorCode::kUsage, "loader order",
                fmt::format("expected a source of {} items, each of one sample; this one has {}, each of {}",
                            order.source_items(), source.items(), source.samples_per_item()));
  }
  if (order.block() != 1 && order.block() != options.batch) {
    bad_option("batch", fmt::format("expected {}, as the order has it", order.block()), options.batch);
  }
  if (options.start_sample % order.items() % order.block() != 0) {
    bad_option("start_sample", fmt::format("expected the start of a batch of {}", order.block()), options.start_sample);
  }
}

}  // namespace

Plan::Plan(const Source& source, const LoaderOptions& options)
    : batch_(options.batch),
      per_item_(source.samples_per_item()),
      grain_(std::max<std::int64_t>(1, source.grain())),
      items_(options.order != nullptr ? options.order->items() : source.items()),
      block_(options.order != nullptr ? options.order->block() : 1),
      rank_(options.rank),
      world_(options.world),
      epoch_end_(options.epoch_end) {
  check(source, options);
  if (options.order != nullptr) {
    check_order(source, options);
  }
  const std::int64_t samples = items_ * per_item_;
  first_epoch_ = options.start_sample / samples;
  const std::int64_t start = options.start_sample % samples;
  base_ = start / per_item_;
  lead_ = start % per_item_;
  if (lead_ != 0 && world_ > 1) {
    bad_option("start_sample",
               fmt::format("expected a multiple of the {} samples of an item with several ranks", per_item_),
               options.start_sample);
  }
  const auto share = [&](std::int64_t items) {
    const std::int64_t blocks = items / block_;
    return (epoch_end_ == EpochEnd::kDrop ? blocks / world_ : divide_up(blocks, world_)) * block_;
  };
  first_items_ = share(items_ - base_);
  epoch_items_ = share(items_);
  if (epoch_end_ != EpochEnd::kSpan) {
    head_ = batches_in(first_items_ * per_item_ - lead_);
    per_epoch_ = batches_in(epoch_items_ * per_item_);
    if (per_epoch_ == 0) {
      bad_option("batch",
                 fmt::format("expected at most the {} samples that an epoch has for each rank, "
                             "since what fills no batch is dropped",
                             epoch_items_ * per_item_),
                 batch_);
    }
  }
}

std::int64_t Plan::batches_in(std::int64_t samples) const {
  return epoch_end_ == EpochEnd::kDrop ? std::max<std::int64_t>(0, samples) / batch_ : divide_up(samples, batch_);
}

std::int64_t Plan::epoch_start(std::int64_t epoch) const {
  return epoch == 0 ? 0 : (first_items_ + (epoch - 1) * epoch_items_) * per_item_;
}

std::int64_t Plan::epoch_of_sample(std::int64_t sample) const {
  const std::int64_t first = first_items_ * per_item_;
  return sample < first ? 0 : 1 + (sample - first) / (epoch_items_ * per_item_);
}

Plan::Item Plan::item_at(std::int64_t position) const {
  std::int64_t index = 0;
  const Run run = items_at(position, {&index, 1});
  return {run.epoch, index};
}

Plan::Run Plan::items_at(std::int64_t position, std::span<std::int64_t> indices) const {
  const std::int64_t epoch = epoch_of_sample(position * per_item_);
  const std::int64_t within = position - epoch_start(epoch) / per_item_;
  const auto left = static_cast<std::size_t>((epoch == 0 ? first_items_ : epoch_items_) - within);
  const std::size_t count = std::min(left, indices.size());
  std::int64_t in_block = within % block_;
  std::int64_t place = (epoch == 0 ? base_ : 0) + (within / block_ * world_ + rank_) * block_ + in_block;
  for (std::int64_t& index : indices.first(count)) {
    // Past the end, repeat the first items of the same order, so that all ranks have equally many.
    place = place < items_ ? place : place % items_;
    index = place;
    const bool ends = ++in_block == block_;
    in_block = ends ? 0 : in_block;
    place += ends ? 1 + (world_ - 1) * block_ : 1;
  }
  return {first_epoch_ + epoch, count};
}

std::int64_t Plan::first_sample(std::int64_t batch_index) const {
  if (epoch_end_ == EpochEnd::kSpan || batch_index < head_) {
    return lead_ + batch_index * batch_;
  }
  const std::int64_t later = batch_index - head_;
  return epoch_start(1 + later / per_epoch_) + later % per_epoch_ * batch_;
}

std::int64_t Plan::end_sample(std::int64_t batch_index) const {
  const std::int64_t end = first_sample(batch_index) + batch_;
  if (epoch_end_ != EpochEnd::kShort) {
    return end;
  }
  const std::int64_t epoch = batch_index < head_ ? 0 : 1 + (batch_index - head_) / per_epoch_;
  return std::min(end, epoch_start(epoch + 1));
}

std::int64_t Plan::batch_of(std::int64_t sample) const {
  if (epoch_end_ == EpochEnd::kSpan) {
    return std::max<std::int64_t>(0, sample - lead_) / batch_;
  }
  const std::int64_t epoch = epoch_of_sample(sample);
  if (epoch == 0) {
    return std::min(std::max<std::int64_t>(0, sample - lead_) / batch_, head_ - 1);
  }
  return head_ + (epoch - 1) * per_epoch_ + std::min((sample - epoch_start(epoch)) / batch_, per_epoch_ - 1);
}

std::int64_t Plan::straddle() const {
  const bool aligned = batch_ % per_item_ == 0 && lead_ == 0;
  return aligned ? 0 : (per_item_ + batch_ - 2) / batch_;
}

std::int64_t Plan::epoch_of_batch(std::int64_t batch_index) const {
  return first_epoch_ + epoch_of_sample(first_sample(batch_index));
}

std::int64_t Plan::epoch_offset(std::int64_t batch_index) const {
  const std::int64_t sample = first_sample(batch_index);
  const std::int64_t epoch = epoch_of_sample(sample);
  return (epoch == 0 ? base_ * per_item_ : 0) + (sample - epoch_start(epoch)) * world_;
}

Plan::Range Plan::unit(std::int64_t number) const {
  if (per_item_ == 1) {
    const std::int64_t each = divide_up(batch_, grain_);
    const std::int64_t batch_index = number / each;
    const std::int64_t end = end_position(batch_index);
    const std::int64_t begin = std::min(begin_position(batch_index) + number % each * grain_, end);
    return {begin, std::min(begin + grain_, end)};
  }
  std::int64_t position = number;
  if (epoch_end_ == EpochEnd::kDrop) {  // skip items that are dropped entirely
    const std::int64_t first = head_ == 0 ? 0 : divide_up(lead_ + head_ * batch_, per_item_);
    const std::int64_t each = divide_up(per_epoch_ * batch_, per_item_);
    if (number >= first) {
      position = first_items_ + (number - first) / each * epoch_items_ + (number - first) % each;
    }
  }
  return {position, position + 1};
}

std::int64_t Plan::begin_timing(std::int64_t batch_index) const {
  const std::int64_t begin = begin_position(batch_index);
  return batch_index == 0 || begin * per_item_ >= first_sample(batch_index) ? begin : begin + 1;
}

std::int64_t Plan::timing_place(std::int64_t batch_index, std::int64_t position) const {
  return per_item_ == 1 ? (position - begin_position(batch_index)) / grain_ : position - begin_timing(batch_index);
}

std::int64_t Plan::timings(std::int64_t batch_index) const {
  return per_item_ == 1 ? divide_up(samples(batch_index), grain_)
                        : std::max<std::int64_t>(0, end_position(batch_index) - begin_timing(batch_index));
}

std::int64_t Plan::most_timings() const {
  // Items that begin in a batch, plus the one in whose middle the stream may start.
  return per_item_ == 1 ? divide_up(batch_, grain_) : (batch_ - 1) / per_item_ + 2;
}

}  // namespace unidle::data::detail
