// Changes a picture's colours randomly, following torchvision's v2.ColorJitter for uint8 tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "unidle/data/detail/crops.h"
#include "unidle/data/random.h"

namespace unidle::data::detail {

/// Ranges of the factors; a range without effect skips its step.
struct ColorJitter {
  Bounds brightness{1, 1};
  Bounds contrast{1, 1};
  Bounds saturation{1, 1};
  Bounds hue{0, 0};  // turns, from -0.5 to 0.5

  bool changes() const { return has(brightness, 1) || has(contrast, 1) || has(saturation, 1) || has(hue, 0); }
  static bool has(Bounds bounds, double still) { return bounds.least != still || bounds.most != still; }
};

enum class ColorStep : int { kBrightness, kContrast, kSaturation, kHue };

/// The values drawn for one sample.
struct ColorChange {
  std::array<float, 4> factors{1, 1, 1, 0};  // by step
  std::array<ColorStep, 4> order{ColorStep::kBrightness, ColorStep::kContrast, ColorStep::kSaturation, ColorStep::kHue};
};
ColorChange draw_colors(CounterRandom& random, const ColorJitter& jitter);

/// Not thread-safe: use one per thread. Reuses its memory.
class ColorChanger {
 public:
  /// Applies the effective steps in order, rounding to 8 bits after each like torchvision. Returns the changed pixels,
  /// valid until the next call.
  const std::uint8_t* run(const std::uint8_t* rgb, std::size_t pixels, const ColorChange& change);

 private:
  void spread(const std::uint8_t* rgb, std::size_t pixels);
  void apply(ColorStep step, float factor, std::size_t pixels);

  std::array<std::vector<float>, 3> planes_;
  std::vector<std::uint8_t> result_;
};

}  // namespace unidle::data::detail
