// Samples from tar archives in WebDataset's layout.
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
  /// Archives, or folders of *.tar, used in natural order of their names.
  std::vector<std::string> paths;
  /// The suffix of each field, after the first dot of a member's name. "jpg;png" takes the one that exists; "json:a.b"
  /// is the number under that key of the member "json". Empty: all pictures, tensors and numbers of the first sample.
  std::vector<std::string> fields{};
  ImageOptions pictures{};
};

/// Consecutive members whose names are equal up to the first dot of the last path component form a sample.
///
/// jpg, jpeg, png and webp are pictures, {3, size, size} as in `images`, with the same crop for all pictures of a
/// sample. npy and *.npy are tensors of one type and shape. cls, cls2, class, count, index, inx and id are whole
/// numbers, {}, int64. A JSON number is int64 if it is whole in the first sample, otherwise float32. A field is named
/// after its first alternative.
///
/// The archives are indexed once (detail/tar_index.h) and then read at random. Throws kInput with archive and member
/// for damage, a sample without a field, a tensor of another shape, and a text that is not a number; kUsage for invalid
/// options. Thread-safe.
class TarSource final : public Source {
 public:
  explicit TarSource(const TarOptions& options);
  ~TarSource() override;

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return static_cast<std::int64_t>(keys_.size()); }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  /// {"shards": number of archives, "left_out": members of the first sample without a field}.
  std::string describe() const override;

 private:
  enum class Kind { kPicture, kTensor, kWhole, kJson };
  struct Wanted {
    std::vector<std::string> suffixes;
    Kind kind;
    std::string key;           // for kJson
    detail::NpyHeader header;  // for kTensor, from the first sample
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
  /// Whether another place of the archive has the wanted file of the sample.
  bool is_elsewhere(std::size_t file, const std::string& key, const Wanted& wanted) const;
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
