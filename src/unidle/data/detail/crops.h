// Which part of a picture a sample shows, with torchvision's rules.
#pragma once

#include "unidle/data/image.h"
#include "unidle/data/random.h"

namespace unidle::data::detail {

struct Bounds {
  double least;
  double most;
};

/// RandomResizedCrop: a share of the area and a ratio of width to height, ten tries, then the largest middle part whose
/// ratio is allowed.
Region random_resized_crop(CounterRandom& random, int width, int height, Bounds scale, Bounds ratio);

/// Resize to `resize` pixels on the shorter side, then CenterCrop to `size` pixels. REQUIRES: size <= resize.
struct MiddlePart {
  int width;  // of the whole picture, resized
  int height;
  int left;  // of the part in it
  int top;
};
MiddlePart resized_middle(int width, int height, int resize, int size);

}  // namespace unidle::data::detail
