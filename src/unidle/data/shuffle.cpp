#include <algorithm>
#include <bit>

#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {

namespace {

// Eight rounds: twice what Luby and Rackoff (1988) need for a pseudo-random permutation, since halves of few bits mix
// less.
constexpr std::uint64_t kRounds = 8;

/// A permutation of [0, 2^bits). The two parts are changed in turn rather than swapped, so that they may differ by a
/// bit and the domain is less than twice what is wanted.
std::uint64_t permute(std::uint64_t key, std::uint64_t value, int bits) {
  const int low_bits = bits / 2;
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << (bits - low_bits)) - 1;
  std::uint64_t low = value & low_mask;
  std::uint64_t high = value >> low_bits;
  for (std::uint64_t round = 0; round < kRounds; round += 2) {
    high ^= mix64(key + kGolden64 * (round + 1) + mix64(low + round)) & high_mask;
    low ^= mix64(key + kGolden64 * (round + 2) + mix64(high + round + 1)) & low_mask;
  }
  return high << low_bits | low;
}

}  // namespace

std::int64_t shuffled_index(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::int64_t n) {
  if (n <= 1) {
    return 0;
  }
  const auto count = static_cast<std::uint64_t>(n);
  const int bits = std::max(2, static_cast<int>(std::bit_width(count - 1)));
  const std::uint64_t key = hash_words({seed, static_cast<std::uint64_t>(epoch), count});
  auto value = static_cast<std::uint64_t>(index);
  do {  // Values beyond n are walked through: their cycle leads back into [0, n).
    value = permute(key, value, bits);
  } while (value >= count);
  return static_cast<std::int64_t>(value);
}

}  // namespace unidle::data
