// Makes samples from pictures: crops at random or in the middle, resizes, changes colours, mirrors, normalises.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "unidle/data/detail/color_jitter.h"
#include "unidle/data/detail/crops.h"
#include "unidle/data/source.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

struct ImageOptions {
  int size = 224;  // side of a sample, pixels
  /// Random resized crop and mirroring; otherwise a centre crop.
  bool train = true;
  detail::Bounds scale{0.08, 1.0};             // share of the picture's area, training
  detail::Bounds ratio{3.0 / 4.0, 4.0 / 3.0};  // width / height, training
  double flip = 0.5;                           // share of mirrored samples, training
  int resize = 0;                              // shorter side before the centre crop; 0 means size * 256 / 224
  bool normalize = true;                       // (x / 255 - mean) / std as float; otherwise 8-bit values
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};
  std::array<float, 3> std{0.229f, 0.224f, 0.225f};
  /// Decodes JPEG at 1/2, 1/4 or 1/8 of its size when the sample is at least that much smaller than its part of the
  /// picture. Much faster for large photographs, but no longer equal to torchvision.
  bool scaled_decode = false;
  /// Applies the EXIF orientation. torchvision's ImageFolder ignores it.
  bool orient = false;
  detail::ColorJitter colors{};  // training
  /// Adds a field "crop": top, left, height, width in the picture as shown, and 1 if mirrored. With colour changes,
  /// also "colors": brightness, contrast, saturation, hue, and the order of these four.
  bool tell_crop = false;
};

/// Reads the options by name, for a source of `kind`.
ImageOptions image_options(SourceOptions& options, std::string_view kind);

namespace detail {

/// Randomness is a function of (seed, epoch, item). Thread-safe.
class PictureSamples {
 public:
  /// Throws kUsage with the option of `kind` for invalid options.
  PictureSamples(const ImageOptions& options, std::string_view kind);
  ~PictureSamples();

  /// "image" {3, size, size}, float32 or uint8.
  Field field() const;
  /// The values drawn for a sample.
  struct Drawn {
    Region crop;  // of the picture as shown
    bool mirrored = false;
    ColorChange colors{};
    std::uint64_t bytes = 0;  // bytes read
  };
  /// Makes samples from a file, or from bytes that `subject` names. Throws kInput.
  Drawn make(const std::string& path, const ItemRequest& request, std::span<std::byte> to) const;
  Drawn make(std::span<const std::byte> bytes, std::string_view subject, const ItemRequest& request,
             std::span<std::byte> to) const;

 private:
  struct Scratch;
  struct Pool;
  struct Part;

  void check(std::string_view kind) const;
  Part choose(const ItemRequest& request, int width, int height) const;
  Drawn make(Scratch& scratch, std::span<const std::byte> bytes, std::string_view subject, const ItemRequest& request,
             std::span<std::byte> to) const;
  void write(const std::uint8_t* pixels, bool mirrored, std::span<std::byte> to) const;

  ImageOptions options_;
  std::array<std::array<float, 256>, 3> values_{};  // normalised values of each channel's 8-bit values
  std::unique_ptr<Pool> pool_;
};

}  // namespace detail

}  // namespace unidle::data
