// Rows of numpy files: .npy shards and uncompressed .npz.
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

/// Item i is row i of every field, over all shards in natural order of their names (2 before 10). The files of field F
/// in FOLDER are F.npy and F_*.npy (also with - or . after F), or *_F.npy, or all of F/, or the members F.npy of all
/// *.npz. Shard k has the same number of rows in each field.
///
/// Accepts any numeric type of up to 8 bytes in either byte order; rows have the machine's own. Rows are read on
/// demand; files in Fortran order with more than one axis are transposed into memory when the source is opened.
///
/// Throws kInput with the file when a field has no file, for damage, when type or shape differ from the first shard's,
/// and when shard lengths differ from the first field's. Thread-safe.
class NpySource final : public Source {
 public:
  NpySource(const std::string& path, std::vector<std::string> field_names);
  ~NpySource() override;
  /// Guesses the fields of a folder: its subfolders with .npy files, the members of its first archive, and its file
  /// names without a leading or trailing number. For a file, its name.
  static std::vector<std::string> find_fields(const std::string& path);

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return ends_.back(); }
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;
  /// A shard, or an even part of one larger than 16 MiB.
  std::int64_t run() const override { return run_; }
  void will_need(std::int64_t begin, std::int64_t end) const override;

 private:
  struct Shard {
    std::size_t file = 0;
    std::uint64_t offset = 0;  // of the data
    detail::NpyHeader header;
    std::vector<std::byte> turned;  // all rows of a file in Fortran order, transposed
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
  std::vector<Shards> shards_;      // per field
  std::vector<std::int64_t> ends_;  // number of items up to the end of each shard
  std::int64_t grain_ = 1;
  std::int64_t run_ = 1;
};

}  // namespace unidle::data
