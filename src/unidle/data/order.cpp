#include "unidle/data/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {

WeightedOrder::WeightedOrder(std::span<const double> weights) {
  double sum = 0;
  sums_.reserve(weights.size());
  for (std::size_t item = 0; item < weights.size(); ++item) {
    if (!(weights[item] >= 0) || !std::isfinite(sum + weights[item])) {
      throw Error(
          ErrorCode::kUsage, "loader option weights",
          fmt::format("expected numbers from 0 with a finite sum, found {} for sample {}", weights[item], item));
    }
    sums_.push_back(sum += weights[item]);
  }
  if (!(sum > 0)) {
    throw Error(ErrorCode::kUsage, "loader option weights", "expected at least one above 0");
  }
}

Order::Place WeightedOrder::at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const {
  constexpr std::uint64_t kDraw = 0x7765696768747321ULL;  // a different key from the randomness of the samples
  CounterRandom random{seed, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(index), kDraw};
  // The first cumulative sum above the draw: never an item of weight zero, whose sum equals its predecessor's.
  auto found = std::upper_bound(sums_.begin(), sums_.end(), random.unit() * sums_.back());
  if (found == sums_.end()) {  // the product was rounded up
    found = std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
  }
  return {found - sums_.begin(), random.next()};
}

GroupedOrder::GroupedOrder(std::span<const std::int64_t> groups, std::int64_t batch, bool shuffle, bool drop_last)
    : batch_(batch), shuffle_(shuffle) {
  const auto count = static_cast<std::int64_t>(groups.size());
  for (const std::int64_t group : groups) {
    if (group < 0 || group >= count) {
      throw Error(ErrorCode::kUsage, "loader option groups",
                  fmt::format("expected numbers from 0 to {}, found {}", count - 1, group));
    }
  }
  if (batch < 1) {
    throw Error(ErrorCode::kUsage, "loader option batch", fmt::format("expected 1 or more, found {}", batch));
  }
  std::vector<std::int64_t> sizes(groups.size());
  for (const std::int64_t group : groups) {
    ++sizes[static_cast<std::size_t>(group)];
  }
  first_member_ = {0};
  first_batch_ = {0};
  for (const std::int64_t size : sizes) {
    first_member_.push_back(first_member_.back() + size);
    first_batch_.push_back(first_batch_.back() + (drop_last ? size / batch : (size + batch - 1) / batch));
  }
  if (first_batch_.back() == 0) {
    throw Error(ErrorCode::kUsage, "loader option batch", "no group fills a batch, and incomplete batches are dropped",
                "a smaller batch, or drop_last=False");
  }
  members_.resize(groups.size());
  std::vector<std::int64_t> next(first_member_.begin(), first_member_.end() - 1);
  for (std::int64_t item = 0; item < count; ++item) {
    const auto group = static_cast<std::size_t>(groups[static_cast<std::size_t>(item)]);
    members_[static_cast<std::size_t>(next[group]++)] = item;
  }
}

Order::Place GroupedOrder::at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const {
  std::int64_t number = index / batch_;
  if (shuffle_) {
    number = shuffled_index(seed, epoch, number, first_batch_.back());
  }
  const auto after = std::upper_bound(first_batch_.begin(), first_batch_.end(), number);
  const auto group = static_cast<std::size_t>(after - first_batch_.begin()) - 1;
  const std::int64_t size = first_member_[group + 1] - first_member_[group];
  std::int64_t member = ((number - first_batch_[group]) * batch_ + index % batch_) % size;
  if (shuffle_) {
    member = shuffled_index(hash_words({seed, group}), epoch, member, size);
  }
  return {members_[static_cast<std::size_t>(first_member_[group] + member)], seed};
}

}  // namespace unidle::data
