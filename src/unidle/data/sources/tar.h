// Samples out of tar archives, as WebDataset writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/detail/npy.h"
#include "unidle/data/detail/open_files.h"
#include "unidle/data/detail/picture_samples.h"
#include "unidle/data/detail/tar_samples.h"
#include "unidle/data/source.h"

namespace unidle::data {

struct TarOptions {
  /// Archives, or folders of *.tar, which come in the natural order of their names.
  std::vector<std::string> paths;
  /// Of each, what stands behind the first point of a member's name; "jpg;png" takes what is there. "json:a.b" is the
  /// number at that key of the member "json". Empty: the pictures, tensors and numbers that the first sample has.
  std::vector<std::string> fields{};
  ImageOptions pictures{};
};

/// Members whose names are the same up to the first point of their last part follow each other and are a sample.
///
/// jpg, jpeg, png and webp are pictures: {3, size, size} as of `images`, all of a sample cut out alike. npy and *.npy
/// are tensors of one type and shape. cls, cls2, class, count, index, inx and id are whole numbers, {}, int64. A
/// number of a json is int64 where that of the first sample is whole, else float32. A field's name is that of its
/// first alternative.
///
/// The archives are indexed once (detail/tar_index.h), and their members read at random. Throws kInput, naming archive
/// and member, for damage, a sample without a field, a tensor of another shape, a text that is no number; kUsage for
/// options that make no sense. Thread-safe.
class TarSource final : public Source {
 public:
  explicit TarSource(const TarOptions& options);
  ~TarSource() override;

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return static_cast<std::int64_t>(keys_.size()); }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  /// {"shards": number of archives, "left_out": what the first sample has beside the fields}.
  std::string describe() const override;

 private:
  enum class Kind { kPicture, kTensor, kWhole, kJson };
  struct Wanted {
    std::vector<std::string> suffixes;
    Kind kind;
    std::string key;           // of a kJson
    detail::NpyHeader header;  // of a kTensor, as the first sample has it
  };
  struct Piece {
    std::size_t file;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  struct Pool;

  static Wanted wanted_of(const std::string& text);
  void choose_fields(std::vector<std::string> names, std::size_t file, const detail::TarSample& first);
  void take(std::size_t file, const detail::TarSample& sample);
  void lay_out_field(const std::string& name, Wanted& wanted, std::size_t file, const detail::TarSample& first);
  std::string subject(std::int64_t item, std::size_t field) const;
  void make(const Wanted& wanted, std::span<const std::byte> bytes, const std::string& subject,
            const ItemRequest& request, std::span<std::byte> to) const;

  std::unique_ptr<detail::OpenFiles> files_;
  detail::PictureSamples pictures_;
  std::int64_t shards_ = 0;
  std::vector<std::string> left_out_;
  std::vector<Field> fields_;
  std::vector<Wanted> wanted_;     // by field
  std::vector<std::string> keys_;  // by sample
  std::vector<Piece> pieces_;      // by sample, then field
  std::unique_ptr<Pool> pool_;
};

}  // namespace unidle::data
