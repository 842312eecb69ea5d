// Which way up a photograph is to be shown: what cameras write beside the pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// How the stored pixels become those that are shown: rows and columns change places, then columns are mirrored, then
/// rows.
struct Orientation {
  bool transposed = false;
  bool across = false;
  bool down = false;

  bool is_stored() const { return !transposed && !across && !down; }
};

/// Of a JPEG, PNG or WebP file, as Pillow's ImageOps.exif_transpose finds it: the EXIF tag, else the one of XMP in a
/// JPEG. Stored as shown where there is none, or none that makes sense.
Orientation orientation_of(std::span<const std::byte> file);

/// The stored part that is shown as `shown`, a part of a picture that is shown with `width` x `height` pixels.
Region stored_region(Orientation orientation, Region shown, int width, int height);
/// The other way round, with the same `width` and `height`.
Region shown_region(Orientation orientation, Region stored, int width, int height);

/// `width` x `height` stored RGB pixels with rows of `stride` bytes, as they are shown, without padding.
void turn(Orientation orientation, const std::uint8_t* pixels, std::size_t stride, int width, int height,
          std::vector<std::uint8_t>& shown);

}  // namespace unidle::data::detail
