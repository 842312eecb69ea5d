// How cameras say a photograph must be turned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// Converts stored pixels to shown ones: first transpose, then mirror columns, then mirror rows.
struct Orientation {
  bool transposed = false;
  bool across = false;
  bool down = false;

  bool is_stored() const { return !transposed && !across && !down; }
};

/// Reads the orientation of a JPEG, PNG or WebP file like Pillow's ImageOps.exif_transpose: the EXIF tag, else the XMP
/// one of a JPEG. Identity when it is absent or invalid.
Orientation orientation_of(std::span<const std::byte> file);

/// Returns the stored region for `shown`, a part of a picture whose shown size is `width` x `height`.
Region stored_region(Orientation orientation, Region shown, int width, int height);
/// The inverse, with the same `width` and `height`.
Region shown_region(Orientation orientation, Region stored, int width, int height);

/// Turns `width` x `height` stored RGB pixels with rows of `stride` bytes to their shown orientation, without padding.
void turn(Orientation orientation, const std::uint8_t* pixels, std::size_t stride, int width, int height,
          std::vector<std::uint8_t>& shown);

}  // namespace unidle::data::detail
