#include "unidle/data/detail/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace unidle::data::detail {

namespace {

/// Truncates like Pillow; lround differs below zero, and where 0.5 makes a double inexact.
int cut_off(double value) { return static_cast<int>(value); }

}  // namespace

void Taps::prepare(int in, double begin, double end, int out, int first, int count) {
  const double scale = (end - begin) / out;
  const double reach = std::max(scale, 1.0);  // half-width of the triangle, in input pixels
  most_ = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  starts_.resize(static_cast<std::size_t>(count));
  lengths_.resize(static_cast<std::size_t>(count));
  weights_.resize(static_cast<std::size_t>(count) * most_);
  exact_.resize(most_);
  begin_ = in;
  end_ = 0;
  for (int pixel = 0; pixel < count; ++pixel) {
    const double centre = begin + (first + pixel + 0.5) * scale;
    const int low = std::max(0, cut_off(centre - reach + 0.5));
    const int high = std::min(in, cut_off(centre + reach + 0.5));
    const auto length = static_cast<std::size_t>(high - low);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const double distance = std::abs((static_cast<double>(i) + low - centre + 0.5) * (1.0 / reach));
      exact_[i] = distance < 1.0 ? 1.0 - distance : 0.0;
      sum += exact_[i];
    }
    std::int32_t* weights = weights_.data() + static_cast<std::size_t>(pixel) * most_;
    for (std::size_t i = 0; i < length; ++i) {
      const double share = sum != 0.0 ? exact_[i] / sum : exact_[i];
      weights[i] = cut_off(0.5 + share * (1 << kBits));
    }
    starts_[static_cast<std::size_t>(pixel)] = low;
    lengths_[static_cast<std::size_t>(pixel)] = high - low;
    begin_ = std::min(begin_, low);
    end_ = std::max(end_, high);
  }
}

namespace {

typedef std::uint8_t Pixel4 __attribute__((vector_size(4)));
typedef std::uint8_t Pixels8 __attribute__((vector_size(8)));
typedef std::int32_t Ints4 __attribute__((vector_size(16)));
typedef std::int32_t Ints8 __attribute__((vector_size(32)));

constexpr std::int32_t kHalf = 1 << (Taps::kBits - 1);
// Loads and stores work on blocks, so memory behind a row must be ours.
constexpr std::size_t kSpare = 64;

/// One horizontal row. Reads and writes one byte beyond the pixels.
[[gnu::always_inline]] inline void across_row(const std::uint8_t* from, const Taps& taps, std::uint8_t* to) {
  for (int pixel = 0; pixel < taps.count(); ++pixel, to += 3) {
    const std::int32_t* weights = taps.weights(pixel);
    const std::uint8_t* at = from + static_cast<std::ptrdiff_t>(taps.start(pixel)) * 3;
    Ints4 sum = Ints4{} + kHalf;
    for (int i = 0; i < taps.length(pixel); ++i, at += 3) {
      Pixel4 bytes;
      std::memcpy(&bytes, at, sizeof bytes);
      sum += __builtin_convertvector(bytes, Ints4) * weights[i];
    }
    const Pixel4 rounded = __builtin_convertvector(sum >> Taps::kBits, Pixel4);
    std::memcpy(to, &rounded, sizeof rounded);
  }
}

/// Four horizontal rows, which share weights: two at a time in a vector.
[[gnu::always_inline]] inline void across_four(const std::uint8_t* from, std::size_t stride, const Taps& taps,
                                               std::uint8_t* to, std::size_t to_stride) {
  const auto add = [&](Ints8 & sum, const std::uint8_t* at, std::int32_t weight) __attribute__((always_inline)) {
    std::uint32_t words[2];
    std::memcpy(&words[0], at, sizeof words[0]);
    std::memcpy(&words[1], at + stride, sizeof words[1]);
    Pixels8 pixels;
    const std::uint64_t both = words[0] | std::uint64_t{words[1]} << 32;
    std::memcpy(&pixels, &both, sizeof pixels);
    sum += __builtin_convertvector(pixels, Ints8) * weight;
  };
  const auto store = [&](const Ints8& sum, std::uint8_t* at) __attribute__((always_inline)) {
    const Pixels8 rounded = __builtin_convertvector(sum >> Taps::kBits, Pixels8);
    std::uint32_t words[2];
    std::memcpy(words, &rounded, sizeof words);
    std::memcpy(at, &words[0], sizeof words[0]);
    std::memcpy(at + to_stride, &words[1], sizeof words[1]);
  };
  for (int pixel = 0; pixel < taps.count(); ++pixel, to += 3) {
    const std::int32_t* weights = taps.weights(pixel);
    const std::uint8_t* at = from + static_cast<std::ptrdiff_t>(taps.start(pixel)) * 3;
    Ints8 upper = Ints8{} + kHalf;
    Ints8 lower = Ints8{} + kHalf;
    for (int i = 0; i < taps.length(pixel); ++i, at += 3) {
      add(upper, at, weights[i]);
      add(lower, at + 2 * stride, weights[i]);
    }
    store(upper, to);
    store(lower, to + 2 * to_stride);
  }
}

/// One row of the result from `length` rows; `bytes` is rounded up to whole blocks.
[[gnu::always_inline]] inline void down_row(const std::uint8_t* from, std::size_t stride, const std::int32_t* weights,
                                            int length, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t at = 0; at < bytes; at += 32) {
    Ints8 sums[4] = {Ints8{} + kHalf, Ints8{} + kHalf, Ints8{} + kHalf, Ints8{} + kHalf};
    for (int i = 0; i < length; ++i) {
      const std::uint8_t* row = from + static_cast<std::size_t>(i) * stride + at;
      for (int block = 0; block < 4; ++block) {
        Pixels8 loaded;
        std::memcpy(&loaded, row + block * 8, sizeof loaded);
        sums[block] += __builtin_convertvector(loaded, Ints8) * weights[i];
      }
    }
    for (int block = 0; block < 4; ++block) {
      const Pixels8 rounded = __builtin_convertvector(sums[block] >> Taps::kBits, Pixels8);
      std::memcpy(to + at + block * 8, &rounded, sizeof rounded);
    }
  }
}

struct SourceRows {
  const std::uint8_t* first;  // the row taps.begin()
  std::size_t stride;
  const std::uint8_t* last;  // the last row, with a spare byte behind it
};

[[gnu::always_inline]] inline void go_across(const SourceRows& rows, int count, const Taps& taps, std::uint8_t* to,
                                             std::size_t to_stride) {
  int row = 0;
  for (; row + 4 < count; row += 4) {  // never includes the last row
    across_four(rows.first + static_cast<std::size_t>(row) * rows.stride, rows.stride, taps,
                to + static_cast<std::size_t>(row) * to_stride, to_stride);
  }
  for (; row < count; ++row) {
    const std::uint8_t* from = row + 1 == count ? rows.last : rows.first + static_cast<std::size_t>(row) * rows.stride;
    across_row(from, taps, to + static_cast<std::size_t>(row) * to_stride);
  }
}

[[gnu::always_inline]] inline void go_down(const std::uint8_t* from, std::size_t stride, const Taps& taps,
                                           std::size_t bytes, std::uint8_t* to) {
  for (int row = 0; row < taps.count(); ++row) {
    down_row(from + static_cast<std::size_t>(taps.start(row) - taps.begin()) * stride, stride, taps.weights(row),
             taps.length(row), bytes, to + static_cast<std::size_t>(row) * bytes);
  }
}

using Across = void (*)(const SourceRows&, int, const Taps&, std::uint8_t*, std::size_t);
using Down = void (*)(const std::uint8_t*, std::size_t, const Taps&, std::size_t, std::uint8_t*);

void across_portable(const SourceRows& rows, int count, const Taps& taps, std::uint8_t* to, std::size_t stride) {
  go_across(rows, count, taps, to, stride);
}
void down_portable(const std::uint8_t* from, std::size_t stride, const Taps& taps, std::size_t bytes,
                   std::uint8_t* to) {
  go_down(from, stride, taps, bytes, to);
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void across_avx2(const SourceRows& rows, int count, const Taps& taps, std::uint8_t* to,
                                         std::size_t stride) {
  go_across(rows, count, taps, to, stride);
}
[[gnu::target("avx2")]] void down_avx2(const std::uint8_t* from, std::size_t stride, const Taps& taps,
                                       std::size_t bytes, std::uint8_t* to) {
  go_down(from, stride, taps, bytes, to);
}
#endif

Across choose_across() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    return across_avx2;
  }
#endif
  return across_portable;
}

Down choose_down() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    return down_avx2;
  }
#endif
  return down_portable;
}

}  // namespace

const std::uint8_t* Resampler::run(const std::uint8_t* pixels, std::size_t stride, int left, int top,
                                   const Taps& across, const Taps& down) {
  const int rows = down.end() - down.begin();
  const std::uint8_t* first = pixels +
                              static_cast<std::ptrdiff_t>(down.begin() - top) * static_cast<std::ptrdiff_t>(stride) -
                              static_cast<std::ptrdiff_t>(left) * 3;
  // Copy the last row: memory behind the picture is not ours to read.
  const std::size_t used_from = static_cast<std::size_t>(across.begin()) * 3;
  const std::size_t used_to = static_cast<std::size_t>(across.end()) * 3;
  last_row_.resize(std::max(last_row_.size(), used_to + kSpare));
  const std::uint8_t* last = first + static_cast<std::ptrdiff_t>(rows - 1) * static_cast<std::ptrdiff_t>(stride);
  std::memcpy(last_row_.data() + used_from, last + used_from, used_to - used_from);

  const std::size_t row_bytes = static_cast<std::size_t>(across.count()) * 3;
  // Whole blocks, and at least one spare byte: pixels are stored as four bytes.
  const std::size_t block_bytes = (row_bytes / 32 + 1) * 32;
  narrow_.resize(std::max(narrow_.size(), block_bytes * static_cast<std::size_t>(rows) + kSpare));
  choose_across()({first, stride, last_row_.data()}, rows, across, narrow_.data(), block_bytes);
  result_.resize(std::max(result_.size(), block_bytes * static_cast<std::size_t>(down.count()) + kSpare));
  choose_down()(narrow_.data(), block_bytes, down, block_bytes, result_.data());
  for (int row = 1; row < down.count(); ++row) {
    std::memmove(result_.data() + static_cast<std::size_t>(row) * row_bytes,
                 result_.data() + static_cast<std::size_t>(row) * block_bytes, row_bytes);
  }
  return result_.data();
}

}  // namespace unidle::data::detail
