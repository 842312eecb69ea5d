// The common PNG, 8-bit RGB or RGBA without interlace, decoded with ISA-L as far as a region needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// Verifies every chunk (lengths up to IEND, CRC of the critical ones), inflates the rows down to the region's last one
/// and undoes the filters of the columns up to its right edge. It never reports errors: whatever it does not take, odd
/// or damaged, is libspng's to decode or to refuse. Not thread-safe.
class FastPng {
 public:
  FastPng();
  ~FastPng();
  FastPng(const FastPng&) = delete;
  FastPng& operator=(const FastPng&) = delete;

  /// False when this is not for us. On success `view` points into this object until the next call.
  /// REQUIRES: `region` is not empty and inside the picture of size `info`.
  bool decode(std::span<const std::byte> bytes, const ImageInfo& info, Region region, ImageDecoder::View& view);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unidle::data::detail
