#include "unidle/data/sources/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "unidle/base/error.h"

namespace unidle::data {

std::int64_t rows_at_once(std::size_t row_bytes) {
  constexpr std::size_t kAtOnceBytes = 32 * 1024;
  return static_cast<std::int64_t>(std::clamp<std::size_t>(kAtOnceBytes / std::max<std::size_t>(1, row_bytes), 1, 256));
}

ArraySource::ArraySource(std::span<const ArrayView> arrays, const std::vector<std::string>& names) {
  const auto fail = [](std::size_t which, std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("array {}", which), std::move(message));
  };
  if (arrays.empty()) {
    throw Error(ErrorCode::kUsage, "arrays", "expected at least one array");
  }
  std::size_t row_bytes = 0;
  for (std::size_t which = 0; which < arrays.size(); ++which) {
    const ArrayView& array = arrays[which];
    if (array.shape.empty()) {
      fail(which, "has no axis; expected rows along the first one");
    }
    if (which == 0) {
      items_ = array.shape[0];
    } else if (array.shape[0] != items_) {
      fail(which, fmt::format("has {} rows; expected {}, as array 0 has", array.shape[0], items_));
    }
    const ArrayView row{array.data,
                        array.dtype,
                        {array.shape.begin() + 1, array.shape.end()},
                        {array.strides.begin() + 1, array.strides.end()}};
    if (items_ > 0 && !row.contiguous()) {
      fail(which, "has rows in pieces; expected each row in one piece of memory");
    }
    fields_.push_back({which < names.size() ? names[which] : std::to_string(which), array.dtype, row.shape});
    columns_.push_back({array.data, array.strides[0], fields_.back().bytes()});
    row_bytes += fields_.back().bytes();
  }
  grain_ = rows_at_once(row_bytes);
}

std::uint64_t ArraySource::read(const ItemRequest& request, std::span<const Places> samples) const {
  for (std::size_t field = 0; field < columns_.size(); ++field) {
    const Column& column = columns_[field];
    std::memcpy(samples[0][field].data(), column.data + request.item * column.stride, column.bytes);
  }
  return 0;
}

std::uint64_t ArraySource::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  constexpr std::size_t kAhead = 8;  // rows that are on their way from memory while one is copied
  for (std::size_t field = 0; field < columns_.size(); ++field) {
    const Column& column = columns_[field];
    std::byte* to = fields[field].first;
    for (std::size_t i = 0; i < requests.size(); ++i, to += column.bytes) {
      if (i + kAhead < requests.size()) {
        __builtin_prefetch(column.data + requests[i + kAhead].item * column.stride);
      }
      std::memcpy(to, column.data + requests[i].item * column.stride, column.bytes);
    }
  }
  return 0;
}

namespace sources {

namespace {

std::unique_ptr<Source> open_arrays(SourceOptions& options, std::span<const ArrayView> arrays) {
  const std::vector<std::string> names = options.texts("names", {});
  options.done();
  return std::make_unique<ArraySource>(arrays, names);
}

}  // namespace

const SourceKind& arrays() {
  static const SourceKind kKind = {"arrays", open_arrays};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
