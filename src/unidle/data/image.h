// Pictures: PNG, JPEG and WebP bytes to 8-bit RGB and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data {

/// 8-bit RGB, rows one after the other without padding: [height, width, 3].
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

/// Pictures with more pixels than this are refused before any memory is asked for: a damaged or hostile header must
/// not exhaust the machine. Twice what Pillow refuses (its MAX_IMAGE_PIXELS * 2 is 179 million pixels).
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Bytes from the start of a file that probe_image() needs for any PNG; others may need all of it.
constexpr std::size_t kPngProbeBytes = 33;

/// Whether a file that begins so is one of those formats, by its first 12 bytes.
bool is_picture_start(std::span<const std::byte> start);

/// Throws kInput for a size that is none, or more than kMaxPixels.
void check_picture_size(std::string_view subject, std::int64_t width, std::int64_t height);

/// Format and size out of the header, without decoding. `subject` names the bytes in errors, usually a path.
/// Throws kInput for anything that is neither PNG nor JPEG nor WebP, and for a damaged header.
ImageInfo probe_image(std::span<const std::byte> bytes, std::string_view subject);

/// Probes a file, reading no more of it than needed. Throws kInput naming the path.
ImageInfo probe_image_file(const std::string& path);

/// Decodes to 8-bit RGB: gray is repeated, palettes are looked up, of 16 bits the high byte is kept, alpha is dropped
/// (not blended), gamma and colour profiles are not applied. A truncated file throws kInput with `subject` and the
/// reason, and so does a PNG with any damage that touches its pixels, in the region or not (its checksums are
/// verified). JPEG has no checksums: damage shows when it breaks the code of the pixels, down to the region's last row.
///
/// Holds scratch memory that grows to the largest picture seen, so that decoding allocates nothing once warm.
/// Not thread-safe: one a thread.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  Picture decode(std::span<const std::byte> bytes, std::string_view subject);

  /// A part of a picture inside the decoder's memory, valid until the next call.
  struct View {
    ImageInfo info;                        // of the whole picture
    Region region;                         // what is decoded
    const std::uint8_t* pixels = nullptr;  // the region's first pixel, RGB
    std::size_t stride = 0;                // bytes from row to row
    int shrink = 1;                        // region and pixels are at 1/shrink of the picture's size
  };
  /// Decodes at least `region` (no more than the rows and columns that it depends on); it must lie inside the picture.
  /// With an empty region: the whole picture. `shrink` may be 2, 4 or 8: a JPEG then comes at that fraction of its
  /// size, for a fraction of the time, as the averages of its blocks; a PNG comes as it is.
  View decode_region(std::span<const std::byte> bytes, std::string_view subject, Region region, int shrink = 1);

  /// As probe_image(), without allocating anything once warm.
  ImageInfo probe(std::span<const std::byte> bytes, std::string_view subject);

  /// Reads a file into the decoder's memory; the bytes are valid until the next call. Throws kInput naming the path.
  std::span<const std::byte> read(const std::string& path);

  /// For tests and measurements: PNG through libspng only, as on a machine without ISA-L.
  void use_reference_png(bool only_reference);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// The bytes of a PNG file with these pixels, 8-bit RGB. `compression` is zlib's level, 0 to 9.
std::string encode_png(const Picture& picture, int compression = 6);

/// The bytes of a JPEG file, 4:2:0. `quality` is 1 to 100.
std::string encode_jpeg(const Picture& picture, int quality = 90);

}  // namespace unidle::data
