#include "unidle/data/image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spng.h>
#include <sys/stat.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/handle.h"
#include "unidle/data/detail/big_endian.h"
#include "unidle/data/detail/jpeg.h"
#include "unidle/data/detail/png_fast.h"
#include "unidle/data/detail/stages.h"
#include "unidle/data/detail/webp.h"

namespace unidle::data {

using detail::big_endian;

namespace {

constexpr std::uint8_t kPngSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

struct SpngTraits {
  using Type = spng_ctx*;
  static Type invalid() { return nullptr; }
  static void close(Type context) { spng_ctx_free(context); }
};
using SpngContext = UniqueHandle<SpngTraits>;

struct JpegTraits {
  using Type = tjhandle;
  static Type invalid() { return nullptr; }
  static void close(Type handle) { tjDestroy(handle); }
};
using JpegHandle = UniqueHandle<JpegTraits>;

const std::uint8_t* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

Error input_error(std::string_view subject, std::string message) {
  return Error(ErrorCode::kInput, std::string(subject), std::move(message));
}

Error out_of_memory(std::string_view subject, std::string_view library) {
  return Error(ErrorCode::kOutOfMemory, std::string(subject), fmt::format("{} got no memory", library));
}

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kPngSignature && std::memcmp(bytes.data(), kPngSignature, sizeof kPngSignature) == 0;
}

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && data_of(bytes)[0] == 0xff && data_of(bytes)[1] == 0xd8;
}

ImageInfo probe_png(std::span<const std::byte> bytes, std::string_view subject) {
  if (bytes.size() < kPngProbeBytes) {
    throw input_error(subject, fmt::format("PNG is cut off in its header, after {} bytes", bytes.size()));
  }
  const std::uint8_t* data = data_of(bytes);
  if (std::memcmp(data + 8, "\0\0\0\rIHDR", 8) != 0) {
    throw input_error(subject, "PNG does not begin with its header chunk");
  }
  const std::int64_t width = big_endian(data + 16);
  const std::int64_t height = big_endian(data + 20);
  check_picture_size(subject, width, height);
  return {ImageFormat::kPng, static_cast<int>(width), static_cast<int>(height)};
}

ImageInfo probe(std::span<const std::byte> bytes, std::string_view subject, detail::JpegDecoder& jpeg) {
  if (is_png(bytes)) {
    return probe_png(bytes, subject);
  }
  if (detail::is_webp(bytes)) {
    return detail::probe_webp(bytes, subject);
  }
  if (is_jpeg(bytes)) {
    return jpeg.probe(bytes, subject);
  }
  throw input_error(
      subject, bytes.empty() ? "is empty; expected a PNG, JPEG or WebP picture" : "is neither PNG nor JPEG nor WebP");
}

void require_spng(int result, std::string_view subject) {
  if (result == SPNG_EMEM) {
    throw out_of_memory(subject, "libspng");
  }
  if (result != 0) {
    throw input_error(subject, fmt::format("PNG cannot be decoded: {}", spng_strerror(result)));
  }
}

/// True when the chunks lead to a complete IEND; libspng accepts a truncated one.
bool has_end(std::span<const std::byte> bytes) {
  constexpr std::size_t kFrame = 12;  // length, type, CRC
  const std::uint8_t* data = data_of(bytes);
  for (std::size_t at = sizeof kPngSignature; bytes.size() - at >= kFrame;) {
    const std::size_t length = big_endian(data + at);
    if (length > bytes.size() - at - kFrame) {
      return false;
    }
    if (std::memcmp(data + at + 4, "IEND", 4) == 0) {
      return true;
    }
    at += kFrame + length;
  }
  return false;
}

/// True when the file is large enough for its pixels at deflate's maximum ratio, 1032:1, so that a damaged size does
/// not cause a huge allocation.
bool can_hold_pixels(std::span<const std::byte> bytes, const ImageInfo& info) {
  const std::uint8_t bit_depth = data_of(bytes)[24];
  const std::uint8_t colour_type = data_of(bytes)[25];
  const std::size_t channels = colour_type == 2 ? 3 : colour_type == 4 ? 2 : colour_type == 6 ? 4 : 1;
  const std::size_t row_bytes = (static_cast<std::size_t>(info.width) * channels * bit_depth + 7) / 8;
  return row_bytes * static_cast<std::size_t>(info.height) / 1032 <= bytes.size();
}

void decode_spng(std::span<const std::byte> bytes, const ImageInfo& info, std::string_view subject,
                 std::vector<std::uint8_t>& pixels) {
  if (!has_end(bytes)) {
    throw input_error(subject, fmt::format("PNG is cut off: its last chunk is missing after {} bytes", bytes.size()));
  }
  if (!can_hold_pixels(bytes, info)) {
    throw input_error(
        subject, fmt::format("PNG is {} bytes, too short for {} x {} pixels", bytes.size(), info.width, info.height));
  }
  pixels.resize(std::max(pixels.size(), info.rgb_bytes()));
  const SpngContext context(spng_ctx_new(0));
  if (!context) {
    throw out_of_memory(subject, "libspng");
  }
  require_spng(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()), subject);
  require_spng(spng_decode_image(context.get(), pixels.data(), info.rgb_bytes(), SPNG_FMT_RGB8, 0), subject);
  require_spng(spng_decode_chunks(context.get()), subject);  // what follows the pixels
}

UniqueFd open_file(const std::string& path) {
  // Non-blocking: a pipe among the pictures must not block a loader forever.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    throw system_error(ErrorCode::kInput, path, "cannot be opened", errno);
  }
  return fd;
}

std::size_t read_some(int fd, const std::string& path, std::byte* to, std::size_t most) {
  std::size_t done = 0;
  while (done < most) {
    const ssize_t got = ::read(fd, to + done, most - done);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      throw system_error(ErrorCode::kInput, path, "cannot be read", errno);
    }
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return done;
}

}  // namespace

std::string_view name_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng: return "png";
    case ImageFormat::kJpeg: return "jpeg";
    case ImageFormat::kWebp: return "webp";
  }
  return {};
}

void check_picture_size(std::string_view subject, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPixels || height > kMaxPixels || width * height > kMaxPixels) {
    throw input_error(subject, fmt::format("is {} x {} pixels; expected at least 1 and at most {} in all", width,
                                           height, kMaxPixels));
  }
}

struct ImageDecoder::Scratch {
  detail::FastPng fast_png;
  bool only_reference = false;
  detail::JpegDecoder jpeg;
  std::vector<std::uint8_t> pixels;
  std::vector<std::byte> file;
};

ImageDecoder::ImageDecoder() : scratch_(std::make_unique<Scratch>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

void ImageDecoder::use_reference_png(bool only_reference) { scratch_->only_reference = only_reference; }

namespace {

ImageDecoder::View part_of(const std::vector<std::uint8_t>& pixels, const ImageInfo& info, Region region) {
  const std::size_t stride = static_cast<std::size_t>(info.width) * 3;
  const std::size_t skip = static_cast<std::size_t>(region.y) * stride + static_cast<std::size_t>(region.x) * 3;
  return {info, region, pixels.data() + skip, stride};
}

}  // namespace

ImageDecoder::View ImageDecoder::decode_region(std::span<const std::byte> bytes, std::string_view subject,
                                               Region region, int shrink) {
  const detail::InStage stage(Stage::kDecode);
  const ImageInfo info = probe(bytes, subject);
  const Region all{0, 0, info.width, info.height};
  if (region.width == 0 && region.height == 0) {
    region = all;
  }
  if (region.x < 0 || region.y < 0 || region.width < 1 || region.height < 1 || region.width > info.width - region.x ||
      region.height > info.height - region.y) {
    throw input_error(subject, fmt::format("is {} x {} pixels; expected {} x {} at ({}, {}) inside it", info.width,
                                           info.height, region.width, region.height, region.x, region.y));
  }
  if (info.format == ImageFormat::kJpeg) {
    return scratch_->jpeg.decode(bytes, subject, region, shrink);
  }
  if (info.format == ImageFormat::kWebp) {
    detail::decode_webp(bytes, info, subject, scratch_->pixels);
    return part_of(scratch_->pixels, info, region);
  }
  View view;
  if (!scratch_->only_reference && scratch_->fast_png.decode(bytes, info, region, view)) {
    return view;
  }
  decode_spng(bytes, info, subject, scratch_->pixels);
  return part_of(scratch_->pixels, info, region);
}

ImageInfo ImageDecoder::probe(std::span<const std::byte> bytes, std::string_view subject) {
  return data::probe(bytes, subject, scratch_->jpeg);
}

Picture ImageDecoder::decode(std::span<const std::byte> bytes, std::string_view subject) {
  const View view = decode_region(bytes, subject, {});
  const std::size_t row_bytes = static_cast<std::size_t>(view.info.width) * 3;
  Picture picture{view.info.width, view.info.height, {}};
  picture.pixels.reserve(view.info.rgb_bytes());
  for (int row = 0; row < view.info.height; ++row) {
    const std::uint8_t* from = view.pixels + static_cast<std::size_t>(row) * view.stride;
    picture.pixels.insert(picture.pixels.end(), from, from + row_bytes);
  }
  return picture;
}

std::span<const std::byte> ImageDecoder::read(const std::string& path) {
  const detail::InStage stage(Stage::kRead);
  const UniqueFd fd = open_file(path);
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) {
    throw system_error(ErrorCode::kInput, path, "cannot be examined", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw input_error(path, "is not a regular file");
  }
  std::vector<std::byte>& file = scratch_->file;
  const auto size = static_cast<std::size_t>(status.st_size);
  file.resize(std::max(file.size(), size));
  return {file.data(), read_some(fd.get(), path, file.data(), size)};
}

bool is_picture_start(std::span<const std::byte> start) {
  return is_png(start) || detail::is_webp(start) || is_jpeg(start);
}

ImageInfo probe_image(std::span<const std::byte> bytes, std::string_view subject) {
  detail::JpegDecoder jpeg;
  return probe(bytes, subject, jpeg);
}

ImageInfo probe_image_file(const std::string& path) {
  std::byte start[kPngProbeBytes];
  {
    const UniqueFd fd = open_file(path);
    const std::span<const std::byte> bytes(start, read_some(fd.get(), path, start, sizeof start));
    if (is_png(bytes)) {
      return probe_png(bytes, path);
    }
  }
  ImageDecoder decoder;
  return probe_image(decoder.read(path), path);
}

std::string encode_png(const Picture& picture, int compression) {
  const SpngContext context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (!context) {
    throw out_of_memory("PNG encoder", "libspng");
  }
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(picture.width);
  header.height = static_cast<std::uint32_t>(picture.height);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, compression);
  int result = spng_set_ihdr(context.get(), &header);
  if (result == 0) {
    result =
        spng_encode_image(context.get(), picture.pixels.data(), picture.bytes(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  }
  std::size_t size = 0;
  const std::unique_ptr<void, decltype(&std::free)> buffer(
      result == 0 ? spng_get_png_buffer(context.get(), &size, &result) : nullptr, &std::free);
  if (!buffer) {
    throw Error(ErrorCode::kUsage, "PNG encoder",
                fmt::format("a picture of {} x {} pixels in {} bytes: {}", picture.width, picture.height,
                            picture.bytes(), spng_strerror(result)));
  }
  return std::string(static_cast<const char*>(buffer.get()), size);
}

std::string encode_jpeg(const Picture& picture, int quality) {
  if (picture.bytes() != ImageInfo{ImageFormat::kJpeg, picture.width, picture.height}.rgb_bytes()) {
    throw Error(ErrorCode::kUsage, "JPEG encoder", "the size of the picture does not match its pixels");
  }
  const JpegHandle handle(tjInitCompress());
  if (!handle) {
    throw out_of_memory("JPEG encoder", "libturbojpeg");
  }
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int result = tjCompress2(handle.get(), picture.pixels.data(), picture.width, 0, picture.height, TJPF_RGB, &made,
                                 &size, TJSAMP_420, quality, 0);
  const std::unique_ptr<unsigned char, decltype(&tjFree)> buffer(made, &tjFree);
  if (result != 0) {
    throw Error(ErrorCode::kUsage, "JPEG encoder", tjGetErrorStr2(handle.get()));
  }
  return std::string(reinterpret_cast<const char*>(buffer.get()), size);
}

}  // namespace unidle::data
