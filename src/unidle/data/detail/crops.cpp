#include "unidle/data/detail/crops.h"

#include <cmath>

namespace unidle::data::detail {

Region random_resized_crop(CounterRandom& random, int width, int height, Bounds scale, Bounds ratio) {
  const double area = static_cast<double>(width) * height;
  const double low = std::log(ratio.least);
  const double high = std::log(ratio.most);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * (scale.least + random.unit() * (scale.most - scale.least));
    const double aspect = std::exp(low + random.unit() * (high - low));
    // Rounds halves to even, like Python.
    const double w = std::nearbyint(std::sqrt(target * aspect));
    const double h = std::nearbyint(std::sqrt(target / aspect));
    if (w >= 1 && w <= width && h >= 1 && h <= height) {
      Region region{0, 0, static_cast<int>(w), static_cast<int>(h)};
      region.y = static_cast<int>(random.below(static_cast<std::uint32_t>(height - region.height + 1)));
      region.x = static_cast<int>(random.below(static_cast<std::uint32_t>(width - region.width + 1)));
      return region;
    }
  }
  Region middle{0, 0, width, height};
  const double whole = static_cast<double>(width) / height;
  if (whole < ratio.least) {
    middle.height = static_cast<int>(std::nearbyint(width / ratio.least));
  } else if (whole > ratio.most) {
    middle.width = static_cast<int>(std::nearbyint(height * ratio.most));
  }
  middle.width = middle.width < 1 ? 1 : middle.width;
  middle.height = middle.height < 1 ? 1 : middle.height;
  middle.x = (width - middle.width) / 2;
  middle.y = (height - middle.height) / 2;
  return middle;
}

MiddlePart resized_middle(int width, int height, int resize, int size) {
  const auto longer = [&](int side, int shorter) {
    return static_cast<int>(static_cast<std::int64_t>(resize) * side / shorter);
  };
  MiddlePart part{};
  part.width = width <= height ? resize : longer(width, height);
  part.height = width <= height ? longer(height, width) : resize;
  part.left = static_cast<int>(std::nearbyint((part.width - size) / 2.0));
  part.top = static_cast<int>(std::nearbyint((part.height - size) / 2.0));
  return part;
}

}  // namespace unidle::data::detail
