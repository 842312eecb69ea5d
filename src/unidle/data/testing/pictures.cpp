#include "unidle/data/testing/pictures.h"

// libjpeg's header needs the types of stdio.
#include <jpeglib.h>
#include <cstdio>
// After jpeglib.h.
#include <spng.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "unidle/base/files.h"
#include "unidle/data/random.h"

namespace unidle::data::testing {

Picture test_picture(int width, int height, std::uint64_t seed) {
  Picture picture{width, height, {}};
  CounterRandom random{seed};
  const double phase = static_cast<double>(random.below(1000)) / 100;
  for (int y = 0; y < height; ++y) {
    const bool noisy = y % 16 >= 8;
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const double wave = std::sin(0.05 * x + phase + channel) + std::cos(0.07 * y - phase);
        const std::uint32_t noise = noisy ? random.below(24) : 0;
        picture.pixels.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(60 + 50 * (wave + 1)) + noise));
      }
    }
  }
  return picture;
}

namespace {

void require(int result) {
  if (result != 0) {
    throw std::runtime_error(spng_strerror(result));
  }
}

std::uint32_t crc_of(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
    }
  }
  return ~crc;
}

}  // namespace

std::string encode_any_png(int width, int height, std::span<const std::uint8_t> raw, const PngShape& shape) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(SPNG_CTX_ENCODER), &spng_ctx_free);
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, shape.compression);
  spng_set_option(context.get(), SPNG_FILTER_CHOICE, shape.filters == 0 ? SPNG_FILTER_CHOICE_ALL : shape.filters);
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(width);
  header.height = static_cast<std::uint32_t>(height);
  header.bit_depth = shape.bit_depth;
  header.color_type = shape.colour_type;
  header.interlace_method = shape.interlaced ? 1 : 0;
  require(spng_set_ihdr(context.get(), &header));
  if (shape.colour_type == SPNG_COLOR_TYPE_INDEXED) {
    spng_plte palette{};
    palette.n_entries = 1u << shape.bit_depth;
    for (std::uint32_t i = 0; i < palette.n_entries; ++i) {
      palette.entries[i] = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(255 - i),
                            static_cast<std::uint8_t>(i / 2), 255};
    }
    require(spng_set_plte(context.get(), &palette));
  }
  require(spng_encode_image(context.get(), raw.data(), raw.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  std::size_t size = 0;
  int error = 0;
  const std::unique_ptr<void, decltype(&std::free)> buffer(spng_get_png_buffer(context.get(), &size, &error),
                                                           &std::free);
  require(error);
  return std::string(static_cast<const char*>(buffer.get()), size);
}

std::string encode_any_jpeg(const Picture& picture, const JpegShape& shape, int quality) {
  jpeg_compress_struct codec;
  jpeg_error_mgr errors;
  codec.err = jpeg_std_error(&errors);  // exits on errors; test pictures can always be encoded
  jpeg_create_compress(&codec);
  unsigned char* made = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &made, &size);
  codec.image_width = static_cast<JDIMENSION>(picture.width);
  codec.image_height = static_cast<JDIMENSION>(picture.height);
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  if (shape.gray) {
    jpeg_set_colorspace(&codec, JCS_GRAYSCALE);
  }
  codec.comp_info[0].h_samp_factor = shape.across;
  codec.comp_info[0].v_samp_factor = shape.down;
  jpeg_set_quality(&codec, quality, TRUE);
  if (shape.progressive) {
    jpeg_simple_progression(&codec);
  }
  jpeg_start_compress(&codec, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(picture.width) * 3);
  for (std::size_t at = 0; at < picture.pixels.size(); at += row.size()) {
    std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(at), row.size(), row.begin());
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&codec, &pointer, 1);
  }
  jpeg_finish_compress(&codec);
  std::string file(reinterpret_cast<const char*>(made), size);
  jpeg_destroy_compress(&codec);
  std::free(made);
  return file;
}

void repair_crcs(std::string& png) {
  const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<std::uint8_t>(png[at])}; };
  for (std::size_t at = 8; at + 12 <= png.size();) {
    const std::size_t length = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (length > png.size() - at - 12) {
      return;
    }
    const std::uint32_t crc = crc_of(std::string_view(png).substr(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    }
    at += 12 + length;
  }
}

void write_pair(const std::filesystem::path& folder, const std::string& name, const Picture& high, int scale) {
  Picture low{high.width / scale, high.height / scale, {}};
  for (int y = 0; y < low.height; ++y) {
    for (int x = 0; x < low.width; ++x) {
      const std::size_t from = (static_cast<std::size_t>(y * scale) * static_cast<std::size_t>(high.width) +
                                static_cast<std::size_t>(x * scale)) *
                               3;
      low.pixels.insert(low.pixels.end(), high.pixels.begin() + static_cast<std::ptrdiff_t>(from),
                        high.pixels.begin() + static_cast<std::ptrdiff_t>(from + 3));
    }
  }
  make_folders(folder / "low");
  make_folders(folder / "high");
  write_file_atomic(folder / "low" / name, encode_png(low, 1));
  write_file_atomic(folder / "high" / name, encode_png(high, 1));
}

}  // namespace unidle::data::testing
