// Decodes a part of a JPEG with libjpeg-turbo, at full size or a fraction of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// Not thread-safe: use one per thread. Reuses its memory.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the header. Throws kInput for damage and for more than kMaxPixels.
  ImageInfo probe(std::span<const std::byte> bytes, std::string_view subject);

  /// Decodes at least `region` (in pixels of the whole picture) at 1/shrink of its size: 1, 2, 4 or 8. With shrink 1
  /// the pixels equal those of the whole picture, also at the region's borders. Rows below the region are not read, so
  /// damage there goes unnoticed. Throws kInput.
  ImageDecoder::View decode(std::span<const std::byte> bytes, std::string_view subject, Region region, int shrink);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace unidle::data::detail
