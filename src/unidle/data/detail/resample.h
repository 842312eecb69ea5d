// Resizes pictures bit for bit like Pillow up to version 12 with its bilinear filter ("antialias": the average over the
// area that a pixel covers): horizontally, rounded to 8 bits, then vertically. Later versions start vertically for some
// sizes, and torchvision computes differently for tensors: both differ by at most 1 of 255.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// The input pixels and weights of each output pixel along one axis.
class Taps {
 public:
  /// Computes pixels [first, first + count) of the `out` pixels that show the part [begin, end) of `in` pixels.
  void prepare(int in, double begin, double end, int out, int first, int count);

  /// The range of input pixels they depend on.
  int begin() const { return begin_; }
  int end() const { return end_; }
  int count() const { return static_cast<int>(starts_.size()); }

  int start(int pixel) const { return starts_[static_cast<std::size_t>(pixel)]; }
  int length(int pixel) const { return lengths_[static_cast<std::size_t>(pixel)]; }
  const std::int32_t* weights(int pixel) const { return weights_.data() + static_cast<std::size_t>(pixel) * most_; }

  /// Fractional bits of the weights.
  static constexpr int kBits = 32 - 8 - 2;

 private:
  int begin_ = 0;
  int end_ = 0;
  std::size_t most_ = 0;
  std::vector<int> starts_;
  std::vector<int> lengths_;
  std::vector<std::int32_t> weights_;
  std::vector<double> exact_;
};

/// Not thread-safe: use one per thread. Reuses its memory.
class Resampler {
 public:
  /// `pixels` is the RGB pixel at column `left` and row `top` in the taps' coordinates; rows have `stride` bytes. The
  /// columns and rows from begin() to end() of the taps must be present. Returns across.count() x down.count() pixels
  /// without padding, valid until the next call.
  const std::uint8_t* run(const std::uint8_t* pixels, std::size_t stride, int left, int top, const Taps& across,
                          const Taps& down);

 private:
  std::vector<std::uint8_t> last_row_;
  std::vector<std::uint8_t> narrow_;
  std::vector<std::uint8_t> result_;
};

}  // namespace unidle::data::detail
