#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>

#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {

namespace {

// Eight rounds: twice what Luby and Rackoff (1988) need for a pseudo-random permutation, since halves of few bits mix
// less.
constexpr std::uint64_t kRounds = 8;

constexpr std::size_t kTogether = 8;  // values that are permuted at once
constexpr std::size_t kMostAtOnce = 64;

/// A permutation of [0, n).
class Permutation {
 public:
  Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n)
      : count_(static_cast<std::uint64_t>(n)), key_(hash_words({seed, static_cast<std::uint64_t>(epoch), count_})) {
    const int bits = std::max(2, static_cast<int>(std::bit_width(count_ - 1)));
    low_bits_ = bits / 2;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  }

  /// Of up to kMostAtOnce. What lies beyond n is walked through: its cycle leads back into [0, n).
  void walk(std::span<std::int64_t> indices) const {
    std::array<std::size_t, kMostAtOnce> under_way;
    std::size_t count = indices.size();
    std::iota(under_way.begin(), under_way.begin() + static_cast<std::ptrdiff_t>(count), std::size_t{0});
    while (count > 0) {
      std::size_t i = 0;
      for (; i + kTogether <= count; i += kTogether) {
        permute<kTogether>(indices, under_way.data() + i);
      }
      for (; i < count; ++i) {
        permute<1>(indices, under_way.data() + i);
      }
      const auto beyond = [&](std::size_t place) { return static_cast<std::uint64_t>(indices[place]) >= count_; };
      const auto end = under_way.begin() + static_cast<std::ptrdiff_t>(count);
      count = static_cast<std::size_t>(std::partition(under_way.begin(), end, beyond) - under_way.begin());
    }
  }

 private:
  /// Of [0, 2^bits), `Count` values at once: the processor begins the products of others while it waits for one's. The
  /// two parts are changed in turn rather than swapped, so that they may differ by a bit and the domain is less than
  /// twice what is wanted.
  template <std::size_t Count>
  void permute(std::span<std::int64_t> values, const std::size_t* places) const {
    std::array<std::uint64_t, Count> low;
    std::array<std::uint64_t, Count> high;
    for (std::size_t i = 0; i < Count; ++i) {
      const auto value = static_cast<std::uint64_t>(values[places[i]]);
      low[i] = value & low_mask_;
      high[i] = value >> low_bits_;
    }
    for (std::uint64_t round = 0; round < kRounds; round += 2) {
      for (std::size_t i = 0; i < Count; ++i) {
        high[i] ^= mix64(key_ + kGolden64 * (round + 1) + mix64(low[i] + round)) & high_mask_;
      }
      for (std::size_t i = 0; i < Count; ++i) {
        low[i] ^= mix64(key_ + kGolden64 * (round + 2) + mix64(high[i] + round + 1)) & low_mask_;
      }
    }
    for (std::size_t i = 0; i < Count; ++i) {
      values[places[i]] = static_cast<std::int64_t>(high[i] << low_bits_ | low[i]);
    }
  }

  std::uint64_t count_;
  std::uint64_t key_;
  int low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
};

}  // namespace

void shuffle_indices(std::uint64_t seed, std::int64_t epoch, std::int64_t n, std::span<std::int64_t> indices) {
  if (n <= 1) {
    std::fill(indices.begin(), indices.end(), 0);
    return;
  }
  const Permutation permutation(seed, epoch, n);
  while (!indices.empty()) {
    const std::size_t count = std::min(indices.size(), kMostAtOnce);
    permutation.walk(indices.first(count));
    indices = indices.subspan(count);
  }
}

std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n) {
  shuffle_indices(seed, epoch, n, {&index, 1});
  return index;
}

}  // namespace unidle::data
