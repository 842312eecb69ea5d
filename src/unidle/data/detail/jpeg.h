// JPEG through libjpeg-turbo: a part of a picture, at full size or at a fraction of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

/// Not thread-safe: one a thread. Keeps its memory from picture to picture.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the header. Throws kInput for damage and more than kMaxPixels.
  ImageInfo probe(std::span<const std::byte> bytes, std::string_view subject);

  /// Decodes what covers `region` (in pixels of the whole picture), at 1/shrink of its size: 1, 2, 4 or 8. With shrink
  /// 1 the pixels are those of the whole picture decoded, also at the region's borders. Of the rows below nothing is
  /// read, so that damage there is not seen. Throws kInput.
  ImageDecoder::View decode(std::span<const std::byte> bytes, std::string_view subject, Region region, int shrink);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace unidle::data::detail
