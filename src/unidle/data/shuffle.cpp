#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {

namespace {

// Eight rounds: twice what Luby and Rackoff (1988) need for a pseudo-random permutation, because halves of few bits mix
// less.
constexpr std::uint64_t kRounds = 8;

constexpr std::size_t kTogether = 8;  // values that are permuted together
constexpr std::size_t kMostAtOnce = 64;

/// A permutation of [0, 2^bits). Alternates between its two halves instead of swapping them, so that they may differ by
/// one bit and the domain is less than twice the requested size.
struct Rounds {
  std::uint64_t key;
  int low_bits;
  std::uint64_t low_mask;
  std::uint64_t high_mask;

  /// Permutes `Count` values together: the processor overlaps their independent multiplications.
  template <std::size_t Count>
  [[gnu::always_inline]] void permute(std::int64_t* values) const {
    std::array<std::uint64_t, Count> low;
    std::array<std::uint64_t, Count> high;
    for (std::size_t i = 0; i < Count; ++i) {
      const auto value = static_cast<std::uint64_t>(values[i]);
      low[i] = value & low_mask;
      high[i] = value >> low_bits;
    }
    for (std::uint64_t round = 0; round < kRounds; round += 2) {
      for (std::size_t i = 0; i < Count; ++i) {
        high[i] ^= mix64(key + kGolden64 * (round + 1) + mix64(low[i] + round)) & high_mask;
      }
      for (std::size_t i = 0; i < Count; ++i) {
        low[i] ^= mix64(key + kGolden64 * (round + 2) + mix64(high[i] + round + 1)) & low_mask;
      }
    }
    for (std::size_t i = 0; i < Count; ++i) {
      values[i] = static_cast<std::int64_t>(high[i] << low_bits | low[i]);
    }
  }

  [[gnu::always_inline]] void permute_all(std::span<std::int64_t> values) const {
    std::size_t i = 0;
    for (; i + kTogether <= values.size(); i += kTogether) {
      permute<kTogether>(values.data() + i);
    }
    for (; i < values.size(); ++i) {
      permute<1>(values.data() + i);
    }
  }
};

void permute_plainly(const Rounds& rounds, std::span<std::int64_t> values) { rounds.permute_all(values); }

#if defined(__x86_64__)
/// The same with instructions that multiply several words at once.
[[gnu::target("avx512f,avx512dq,avx512vl")]] void permute_wide(const Rounds& rounds, std::span<std::int64_t> values) {
  rounds.permute_all(values);
}

bool has_wide_products() {
  static const bool kHas = __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return kHas;
}
#endif

/// A permutation of [0, n).
class Permutation {
 public:
  Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n) : count_(static_cast<std::uint64_t>(n)) {
    const int bits = std::max(2, static_cast<int>(std::bit_width(count_ - 1)));
    rounds_.key = hash_words({seed, static_cast<std::uint64_t>(epoch), count_});
    rounds_.low_bits = bits / 2;
    rounds_.low_mask = (std::uint64_t{1} << rounds_.low_bits) - 1;
    rounds_.high_mask = (std::uint64_t{1} << (bits - rounds_.low_bits)) - 1;
  }

  /// Permutes up to kMostAtOnce values. Values beyond n continue along their cycle, which leads back into [0, n).
  void walk(std::span<std::int64_t> indices) const {
    permute(indices);
    while (true) {
      std::array<std::size_t, kMostAtOnce> places;
      std::array<std::int64_t, kMostAtOnce> beyond;
      std::size_t count = 0;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        places[count] = i;
        beyond[count] = indices[i];
        count += static_cast<std::uint64_t>(indices[i]) >= count_ ? 1 : 0;
      }
      if (count == 0) {
        return;
      }
      permute(std::span(beyond).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        indices[places[i]] = beyond[i];
      }
    }
  }

 private:
  void permute(std::span<std::int64_t> values) const {
#if defined(__x86_64__)
    if (has_wide_products()) {
      permute_wide(rounds_, values);
      return;
    }
#endif
    permute_plainly(rounds_, values);
  }

  std::uint64_t count_;
  Rounds rounds_;
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
