// Pictures and odd PNG files for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::testing {

/// Smooth with some noise like photographs, so that encoders use every row filter.
Picture test_picture(int width, int height, std::uint64_t seed = 1);

/// How a PNG is stored.
struct PngShape {
  std::uint8_t colour_type = 2;  // as in the PNG header
  std::uint8_t bit_depth = 8;
  int filters = 0;  // spng_filter_choice; 0 lets the library choose
  bool interlaced = false;
  int compression = 6;
};

/// Encodes any kind of PNG. `raw` has the file's own layout: packed rows, 16-bit samples in machine order. Palette
/// pictures get a palette with entry i = (i, 255 - i, i / 2).
std::string encode_any_png(int width, int height, std::span<const std::uint8_t> raw, const PngShape& shape);

/// How a JPEG is stored.
struct JpegShape {
  int across = 2;  // brightness pixels per colour pixel
  int down = 2;
  bool progressive = false;
  bool gray = false;
};

/// Encodes any kind of JPEG.
std::string encode_any_jpeg(const Picture& picture, const JpegShape& shape, int quality = 85);

/// Corrects the CRC of every chunk, so that damage reaches the decoder.
void repair_crcs(std::string& png);

/// Writes FOLDER/low/NAME and FOLDER/high/NAME; low is every scale-th pixel of high.
void write_pair(const std::filesystem::path& folder, const std::string& name, const Picture& high, int scale = 4);

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace unidle::data::testing
