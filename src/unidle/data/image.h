// Converts PNG, JPEG and WebP to 8-bit RGB and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data {

/// 8-bit RGB, rows contiguous without padding: [height, width, 3].
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;

  std::size_t bytes() const { return pixels.size(); }
};

enum class ImageFormat { kPng, kJpeg, kWebp };
std::string_view name_of(ImageFormat format);  // "png", "jpeg", "webp"

struct ImageInfo {
  ImageFormat format = ImageFormat::kPng;
  int width = 0;
  int height = 0;

  std::size_t rgb_bytes() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3; }
};

/// A part of a picture, in pixels.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// Larger pictures are rejected before memory is allocated: a damaged or hostile header must not exhaust the machine.
/// Pillow's limit is 179 million pixels (MAX_IMAGE_PIXELS * 2).
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Bytes from the start of a file that probe_image() needs for any PNG; other formats may need the whole file.
constexpr std::size_t kPngProbeBytes = 33;

/// True when a file's first 12 bytes are those of a supported format.
bool is_picture_start(std::span<const std::byte> start);

/// Throws kInput for a size that is not positive or has more than kMaxPixels.
void check_picture_size(std::string_view subject, std::int64_t width, std::int64_t height);

/// Reads format and size from the header, without decoding. `subject` names the bytes in errors, usually a path. Throws
/// kInput for other formats than PNG, JPEG and WebP, and for a damaged header.
ImageInfo probe_image(std::span<const std::byte> bytes, std::string_view subject);

/// Probes a file, reading only what is needed. Throws kInput with the path.
ImageInfo probe_image_file(const std::string& path);

/// Decodes to 8-bit RGB: repeats gray, looks up palettes, keeps the high byte of 16 bits, drops alpha without blending,
/// and ignores gamma and colour profiles. Throws kInput with `subject` and the reason for a truncated file and for a
/// PNG with any damage to its pixels, inside the region or not (its checksums are verified). JPEG has no checksums:
/// damage is detected when it breaks the entropy code, down to the region's last row.
///
/// Keeps scratch memory that grows to the largest picture, so that decoding does not allocate once warm. Not
/// thread-safe: use one per thread.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  Picture decode(std::span<const std::byte> bytes, std::string_view subject);

  /// A part of a picture in the decoder's memory, valid until the next call.
  struct View {
    ImageInfo info;                        // of the whole picture
    Region region;                         // the decoded part
    const std::uint8_t* pixels = nullptr;  // the region's first pixel, RGB
    std::size_t stride = 0;                // bytes per row
    int shrink = 1;                        // region and pixels are at 1/shrink of the picture's size
  };
  /// Decodes at least `region` (and only the rows and columns it depends on), which must lie inside the picture; an
  /// empty region means the whole picture. `shrink` may be 2, 4 or 8: a JPEG is then decoded at that fraction of its
  /// size, in a fraction of the time, as averages of its blocks; a PNG keeps its size.
  View decode_region(std::span<const std::byte> bytes, std::string_view subject, Region region, int shrink = 1);

  /// Like probe_image(), but does not allocate once warm.
  ImageInfo probe(std::span<const std::byte> bytes, std::string_view subject);

  /// Reads a file into the decoder's memory, valid until the next call. Throws kInput with the path.
  std::span<const std::byte> read(const std::string& path);

  /// For tests and benchmarks: decodes PNG with libspng only, as on a machine without ISA-L.
  void use_reference_png(bool only_reference);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Encodes a PNG file, 8-bit RGB. `compression` is zlib's level, 0 to 9.
std::string encode_png(const Picture& picture, int compression = 6);

/// Encodes a JPEG file, 4:2:0. `quality` is 1 to 100.
std::string encode_jpeg(const Picture& picture, int quality = 90);

}  // namespace unidle::data
