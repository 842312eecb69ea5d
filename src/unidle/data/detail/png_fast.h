// Decodes the common PNG (8-bit RGB or RGBA, not interlaced) with ISA-L, only as far as a region needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// Verifies every chunk (lengths up to IEND, CRC of the critical ones), inflates the rows down to the region's last
/// one, and undoes the filters of the columns up to its right edge. Reports no errors: libspng decodes or rejects
/// everything unusual or damaged. Not thread-safe.
class FastPng {
 public:
  FastPng();
  ~FastPng();
  FastPng(const FastPng&) = delete;
  FastPng& operator=(const FastPng&) = delete;

  /// Returns false when the file must be left to libspng. On success `view` points into this object until the next
  /// call. REQUIRES: `region` is not empty and inside the picture of size `info`.
  bool decode(std::span<const std::byte> bytes, const ImageInfo& info, Region region, ImageDecoder::View& view);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unidle::data::detail
