// Pictures with a class each: the data of classification.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/detail/crops.h"
#include "unidle/data/source.h"

namespace unidle::data {

struct ImageOptions {
  int size = 224;  // side of a sample, pixels
  /// Random resized crop and mirroring; otherwise the middle of the picture.
  bool train = true;
  detail::Bounds scale{0.08, 1.0};             // share of the picture's area, training
  detail::Bounds ratio{3.0 / 4.0, 4.0 / 3.0};  // width / height, training
  double flip = 0.5;                           // share of the samples that are mirrored, training
  int resize = 0;                              // shorter side before the middle is cut out; 0 is size * 256 / 224
  bool normalize = true;                       // (x / 255 - mean) / std as float; otherwise 8-bit values
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};
  std::array<float, 3> std{0.229f, 0.224f, 0.225f};
  /// JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the sample is at least so much smaller than its part of the
  /// picture. Much faster on large photographs, and no longer equal to torchvision.
  bool scaled_decode = false;
  bool tell_crop = false;  // adds a field "crop": top, left, height, width of the part in the picture, 1 if mirrored
};

/// Pictures of FOLDER/CLASS/**/NAME (.jpg, .jpeg, .png), in torchvision's order: classes by name, then folders and
/// names. Or of a list, a text file of lines "PATH LABEL" with paths relative to it. A sample is "image" {3, size,
/// size}, float32 or uint8, and "label" {}, int64. The pixels are those of torchvision's RandomResizedCrop,
/// RandomHorizontalFlip, Resize and CenterCrop on Pillow's pictures: see detail/resample.h; with scaled_decode nearly
/// so.
///
/// The constructor lists the files and opens none. It throws kInput, naming the file or folder, for a missing or empty
/// folder, a class without pictures, a picture of a kind that is not read, and a line that is none; kUsage for options
/// that make no sense. Thread-safe.
class ImageSource final : public Source {
 public:
  ImageSource(const std::string& path, const ImageOptions& options);
  ~ImageSource() override;

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return static_cast<std::int64_t>(files_.size()); }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::string describe() const override;

  const std::vector<std::string>& classes() const { return classes_; }

 private:
  struct File {
    std::string path;
    std::int64_t label;
  };
  struct Scratch;
  struct Pool;
  struct Part;

  void check_options() const;
  void list_folder(const std::string& folder);
  void list_lines(const std::string& list);
  Part choose(const ItemRequest& request, int width, int height) const;
  void write(const std::uint8_t* pixels, bool mirrored, std::span<std::byte> to) const;

  ImageOptions options_;
  std::vector<Field> fields_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  std::array<std::array<float, 256>, 3> values_{};  // of a channel's 8-bit values, normalised
  std::unique_ptr<Pool> pool_;
};

}  // namespace unidle::data
