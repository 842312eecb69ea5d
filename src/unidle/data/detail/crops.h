// Chooses the part of a picture for a sample, by torchvision's rules.
#pragma once

#include "unidle/data/image.h"
#include "unidle/data/random.h"

namespace unidle::data::detail {

struct Bounds {
  double least;
  double most;
};

/// RandomResizedCrop: draws a share of the area and an aspect ratio, tries ten times, then takes the largest centred
/// part with an allowed ratio.
Region random_resized_crop(CounterRandom& random, int width, int height, Bounds scale, Bounds ratio);

/// Resizes the shorter side to `resize` pixels, then takes the central `size` pixels (CenterCrop). REQUIRES: size <=
/// resize.
struct MiddlePart {
  int width;  // of the whole resized picture
  int height;
  int left;  // of the part within it
  int top;
};
MiddlePart resized_middle(int width, int height, int resize, int size);

}  // namespace unidle::data::detail
