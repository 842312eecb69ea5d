// Random numbers as a pure function of keys, so that any thread can make any item.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace unidle::data {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64-bit words that mixes every bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kGolden64 = 0x9e3779b97f4a7c15ULL;

/// Hashes several words into one; their order matters.
constexpr std::uint64_t hash_words(std::initializer_list<std::uint64_t> words) {
  std::uint64_t state = 0x243f6a8885a308d3ULL;
  for (const std::uint64_t word : words) {
    state = mix64((state ^ mix64(word + kGolden64)) + kGolden64);
  }
  return state;
}

/// SplitMix64 keyed by words such as {seed, epoch, item, crop}. Its values are stable across versions and machines, so
/// that runs are reproducible.
class CounterRandom {
 public:
  explicit constexpr CounterRandom(std::initializer_list<std::uint64_t> key) : state_(hash_words(key)) {}

  constexpr std::uint64_t next() { return mix64(state_ += kGolden64); }

  /// Uniform in [0, bound), by the high half of a 64 x 32 bit product; the bias is below bound / 2^32. REQUIRES: bound
  /// > 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  /// Uniform in [0, 1), with 53 bits.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace unidle::data
