// Rows of arrays in the caller's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

/// Item i is row i of every array; each array is a field with its type and the shape behind its first axis. Rows may be
/// apart, but each must be contiguous. A field in `ragged` is given by two arrays: the concatenated rows of all items,
/// and int64 [items + 1] with the start of each item. It is padded with zeros to the longest of a batch.
///
/// The arrays are not copied: they must stay alive and unchanged as long as the source. Throws kUsage for no arrays,
/// different lengths, rows that are not contiguous, and invalid starts. Thread-safe.
class ArraySource final : public Source {
 public:
  ArraySource(std::span<const ArrayView> arrays, const std::vector<std::string>& names,
              const std::vector<std::int64_t>& ragged = {});

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return items_; }
  std::int64_t grain() const override { return grain_; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const ItemRequest& request, std::span<const Places> samples) const override;
  std::uint64_t gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const override;
  std::int64_t extent(std::int64_t item, std::size_t field) const override;

 private:
  struct Column {
    const std::byte* data;
    std::int64_t stride;
    std::size_t bytes;           // per row
    const std::int64_t* starts;  // start of each item of a ragged field, in rows
  };
  void add(std::size_t which, const ArrayView& array, const ArrayView* starts, const std::vector<std::string>& names);
  std::vector<Field> fields_;
  std::vector<Column> columns_;
  std::int64_t items_ = 0;
  std::int64_t grain_ = 1;
};

/// How many rows of this size to take at once: enough for low overhead, few enough that all threads get some.
std::int64_t rows_at_once(std::size_t row_bytes);

}  // namespace unidle::data
