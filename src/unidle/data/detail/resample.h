// Pictures made smaller or larger, bit for bit as Pillow up to version 12 does it with its bilinear filter (which takes
// the average over all that a pixel covers, "antialias"): across, rounded to 8 bits, then down. Later versions go down
// first for some sizes, and torchvision has another arithmetic for tensors: both differ by 1 of 255 at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// What each pixel of one axis is made of.
class Taps {
 public:
  /// The pixels [first, first + count) of `out` that show the part [begin, end) of `in` pixels.
  void prepare(int in, double begin, double end, int out, int first, int count);

  /// What of the input they are made of.
  int begin() const { return begin_; }
  int end() const { return end_; }
  int count() const { return static_cast<int>(starts_.size()); }

  int start(int pixel) const { return starts_[static_cast<std::size_t>(pixel)]; }
  int length(int pixel) const { return lengths_[static_cast<std::size_t>(pixel)]; }
  const std::int32_t* weights(int pixel) const { return weights_.data() + static_cast<std::size_t>(pixel) * most_; }

  /// Weights have so many bits behind the point.
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

/// Not thread-safe: one a thread. Keeps its memory.
class Resampler {
 public:
  /// `pixels` is the pixel at column `left` and row `top` of what the taps count in; RGB, rows of `stride` bytes. At
  /// least the columns and rows from begin() to end() of the taps must be there. Returns across.count() x down.count()
  /// pixels without padding, valid until the next call.
  const std::uint8_t* run(const std::uint8_t* pixels, std::size_t stride, int left, int top, const Taps& across,
                          const Taps& down);

 private:
  std::vector<std::uint8_t> last_row_;
  std::vector<std::uint8_t> narrow_;
  std::vector<std::uint8_t> result_;
};

}  // namespace unidle::data::detail
