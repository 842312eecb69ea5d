// Pairs of low- and high-resolution pictures with the same crop, for super-resolution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/detail/scratch_pool.h"
#include "unidle/data/image.h"
#include "unidle/data/picture_cache.h"
#include "unidle/data/source.h"

namespace unidle::data {

struct ImagePairOptions {
  int crop = 128;               // side of the high crop in pixels; a multiple of `scale`
  int scale = 4;                // high size / low size
  int crops_per_item = 1;       // samples per decode
  bool flip = true;             // mirrors half of the crops horizontally
  std::size_t cache_bytes = 0;  // for decoded pictures; 0 decodes every time
};

/// Reads FOLDER/high/NAME and FOLDER/low/NAME (.png, .jpg or .jpeg; the same name in both), one item per pair, ordered
/// by name. A sample is "low" {crop/scale, crop/scale, 3} and "high" {crop, crop, 3}, 8-bit RGB: the same part of both
/// pictures, aligned to `scale` and possibly mirrored; (seed, epoch, item, crop) determine both. The result does not
/// depend on the cache.
///
/// The constructor reads the header of every picture. Throws kInput with the file for a missing or empty folder, an
/// unpaired picture, sizes that do not match the scale, and pictures smaller than the crop; kUsage for invalid options.
/// Thread-safe.
class ImagePairSource final : public Source {
 public:
  enum FieldIndex : std::size_t { kLow = 0, kHigh = 1 };

  ImagePairSource(const std::string& folder, const ImagePairOptions& options);
  ~ImagePairSource() override;

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return static_cast<std::int64_t>(pairs_.size()); }
  std::int64_t samples_per_item() const override { return options_.crops_per_item; }
  /// Throws kInput with the file when a picture is damaged or has changed since the constructor read its header.
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;

  struct Pair {
    std::shared_ptr<const Picture> low;
    std::shared_ptr<const Picture> high;
  };
  /// Returns both whole pictures, for validation. Must not outlive the source.
  Pair read_pair(std::int64_t item) const;

  /// File name of an item, e.g. "0001.png".
  const std::string& name(std::int64_t item) const { return pairs_.at(static_cast<std::size_t>(item)).name; }
  const PictureCache& cache() const { return *cache_; }
  /// Bytes that a cache of all pictures needs.
  std::size_t decoded_bytes() const;

 private:
  struct Files {
    std::string name;
    ImageInfo info[2];  // by FieldIndex
  };
  using Decoders = detail::ScratchPool<ImageDecoder>;
  struct Crop;

  std::string path(const std::string& name, FieldIndex which) const;
  /// Reads the headers of a pair and checks the sizes.
  Files probe(std::string name) const;
  Crop choose(const ItemRequest& request, std::size_t crop) const;
  /// Copies one picture's part of every sample; returns the bytes read from storage.
  std::uint64_t fill(const ItemRequest& request, FieldIndex which, std::span<const Places> samples) const;
  const Picture* cached(std::int64_t item, FieldIndex which, std::uint64_t& read_bytes) const;
  Picture decode_whole(std::int64_t item, FieldIndex which, std::uint64_t& read_bytes) const;
  void check_unchanged(const std::string& path, const ImageInfo& now, const ImageInfo& before) const;

  std::string folder_;
  ImagePairOptions options_;
  std::vector<Field> fields_;
  std::vector<Files> pairs_;
  std::unique_ptr<Decoders> decoders_;
  std::unique_ptr<PictureCache> cache_;
};

}  // namespace unidle::data
