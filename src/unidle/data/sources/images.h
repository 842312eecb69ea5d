// Pictures with a class each, for classification.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/data/detail/picture_samples.h"
#include "unidle/data/source.h"

namespace unidle::data {

/// Reads pictures FOLDER/CLASS/**/NAME (.jpg, .jpeg, .png, .webp) in torchvision's order (classes, then folders and
/// names), or from a list, a text file of lines "PATH LABEL" with paths relative to it. A sample is "image" {3, size,
/// size}, float32 or uint8, and "label" {}, int64. The pixels equal torchvision's RandomResizedCrop,
/// RandomHorizontalFlip, Resize and CenterCrop on Pillow's pictures, see detail/resample.h; with scaled_decode only
/// approximately.
///
/// The constructor lists the files without opening them. Throws kInput with the file or folder for a missing or empty
/// folder, a class without pictures, an unsupported picture format, and a malformed line; kUsage for invalid options.
/// Thread-safe.
class ImageSource final : public Source {
 public:
  ImageSource(const std::string& path, const ImageOptions& options);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return static_cast<std::int64_t>(files_.size()); }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::string describe() const override;

  const std::vector<std::string>& classes() const { return classes_; }
  const std::string& file(std::int64_t item) const { return files_.at(static_cast<std::size_t>(item)).path; }
  std::int64_t label(std::int64_t item) const { return files_.at(static_cast<std::size_t>(item)).label; }

 private:
  struct File {
    std::string path;
    std::int64_t label;
  };
  void list_folder(const std::string& folder);
  void list_lines(const std::string& list);
  void tell(const detail::PictureSamples::Drawn& drawn, const Places& places) const;

  ImageOptions options_;
  std::vector<Field> fields_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  detail::PictureSamples samples_;
};

}  // namespace unidle::data
