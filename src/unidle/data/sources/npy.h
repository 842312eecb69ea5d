// Rows of numpy's files: .npy shards and uncompressed .npz.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/detail/npy.h"
#include "unidle/data/detail/open_files.h"
#include "unidle/data/source.h"

namespace unidle::data {

/// Item i is row i of every field, over all shards in the natural order of their names (2 before 10). The files of the
/// field F, in FOLDER: F.npy and F_*.npy (also with - and . after it), or *_F.npy, or all of F/, or the members F.npy
/// of all *.npz. Shard k of each field has the same rows. A path to one .npy file is a field with the file's name.
///
/// Any numeric type of up to 8 bytes, either byte order (rows come in the machine's own). Rows are read when they are
/// asked for; files in Fortran order are transposed and held in memory when the source is opened, unless they have
/// one axis, where there is no difference.
///
/// Throws kInput naming the file: no file for a field, damage, other types or shapes than the first shard's, shards of
/// other lengths than the first field's. Thread-safe.
class NpySource final : public Source {
 public:
  NpySource(const std::string& path, std::vector<std::string> field_names);
  ~NpySource() override;
  /// The fields that a folder seems to have: its folders with .npy files, the members of its first archive, and the
  /// names of its files without a number before or behind. Of a file its name.
  static std::vector<std::string> find_fields(const std::string& path);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return ends_.back(); }
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;
  /// A shard, or an even part of one of more than 16 MiB.
  std::int64_t run() const override { return run_; }
  void will_need(std::int64_t begin, std::int64_t end) const override;

 private:
  struct Shard {
    std::size_t file = 0;
    std::uint64_t offset = 0;  // of the data
    detail::NpyHeader header;
    std::vector<std::byte> turned;  // all rows, of a file in Fortran order
  };
  using Shards = std::vector<Shard>;

  void add_field(const std::string& name, const std::vector<std::string>& paths);
  Shard open_member(std::size_t file, std::uint64_t offset, std::uint64_t bytes, const std::string& subject);
  Shards open_archives(const std::string& name, const std::vector<std::string>& paths);
  void take_shards(const std::string& name, Shards shards);
  void turn(Shard& shard) const;
  void read_row(std::int64_t item, std::size_t field, std::span<std::byte> to) const;

  std::unique_ptr<detail::OpenFiles> files_;
  std::vector<Field> fields_;
  std::vector<Shards> shards_;      // a field
  std::vector<std::int64_t> ends_;  // items up to the end of each shard
  std::int64_t grain_ = 1;
  std::int64_t run_ = 1;
};

}  // namespace unidle::data
