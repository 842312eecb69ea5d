// Rows of arrays that somebody else holds in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

/// Item i is row i of every array: a field each, of the array's type and the shape behind its first axis. Rows may lie
/// apart, but each must be in one piece. A field in `ragged` is given by two arrays: the rows of all items, one after
/// the other, and int64 [items + 1] where those of each item begin. It is filled up with zeros to the longest of a
/// batch.
///
/// The arrays are not copied: they must live, and stay as they are, as long as the source. Throws kUsage for no array,
/// different lengths, rows in pieces, and items that begin nowhere. Thread-safe.
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
    std::size_t bytes;           // of a row
    const std::int64_t* starts;  // of the items of a ragged field, in rows
  };
  void add(std::size_t which, const ArrayView& array, const ArrayView* starts, const std::vector<std::string>& names);
  std::vector<Field> fields_;
  std::vector<Column> columns_;
  std::int64_t items_ = 0;
  std::int64_t grain_ = 1;
};

/// How many rows of so many bytes are best taken at once: enough that handing them out costs little, few enough that
/// all threads have some.
std::int64_t rows_at_once(std::size_t row_bytes);

}  // namespace unidle::data
