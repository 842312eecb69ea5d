#include "unidle/data/sources/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "unidle/base/error.h"

namespace unidle::data {

std::int64_t rows_at_once(std::size_t row_bytes) {
  constexpr std::size_t kAtOnceBytes = 32 * 1024;
  return static_cast<std::int64_t>(std::clamp<std::size_t>(kAtOnceBytes / std::max<std::size_t>(1, row_bytes), 1, 256));
}

namespace {

[[noreturn]] void refuse_array(std::size_t which, std::string message) {
  throw Error(ErrorCode::kUsage, fmt::format("array {}", which), std::move(message));
}

const std::int64_t* checked_starts(std::size_t which, const ArrayView& array, const ArrayView& starts) {
  const bool numbers = starts.dtype == DType::kI64 && starts.shape.size() == 1 && starts.contiguous();
  if (!numbers || starts.shape[0] < 1) {
    refuse_array(which, "starts: expected int64 [items + 1], one after the other");
  }
  const auto* first = reinterpret_cast<const std::int64_t*>(starts.data);
  const auto* end = first + starts.shape[0];
  if (*first != 0 || *std::prev(end) != array.shape[0] || !std::is_sorted(first, end)) {
    refuse_array(which, fmt::format("starts: expected numbers that rise from 0 to the {} rows", array.shape[0]));
  }
  return first;
}

}  // namespace

ArraySource::ArraySource(std::span<const ArrayView> arrays, const std::vector<std::string>& names,
                         const std::vector<std::int64_t>& ragged) {
  if (arrays.empty()) {
    throw Error(ErrorCode::kUsage, "arrays", "expected at least one array");
  }
  for (std::size_t at = 0; at < arrays.size(); ++at) {
    const std::size_t which = fields_.size();
    const bool two = std::find(ragged.begin(), ragged.end(), static_cast<std::int64_t>(which)) != ragged.end();
    if (two && at + 1 == arrays.size()) {
      refuse_array(which, "starts: expected after the rows");
    }
    add(which, arrays[at], two ? &arrays[at + 1] : nullptr, names);
    at += two ? 1 : 0;
  }
  std::size_t row_bytes = 0;
  for (const Field& field : fields_) {
    row_bytes += field.bytes();
  }
  grain_ = ragged.empty() ? rows_at_once(row_bytes) : 1;
}

void ArraySource::add(std::size_t which, const ArrayView& array, const ArrayView* starts,
                      const std::vector<std::string>& names) {
  if (array.shape.empty()) {
    refuse_array(which, "has no axis; expected rows along the first one");
  }
  const std::int64_t* places = starts == nullptr ? nullptr : checked_starts(which, array, *starts);
  const std::int64_t items = places == nullptr ? array.shape[0] : starts->shape[0] - 1;
  if (which == 0) {
    items_ = items;
  } else if (items != items_) {
    refuse_array(which, fmt::format("has {} rows; expected {}, as array 0 has", items, items_));
  }
  const ArrayView row{array.data,
                      array.dtype,
                      {array.shape.begin() + 1, array.shape.end()},
                      {array.strides.begin() + 1, array.strides.end()}};
  if (array.shape[0] > 0 && (places == nullptr ? !row.contiguous() : !array.contiguous())) {
    refuse_array(which, "has rows in pieces; expected each row in one piece of memory");
  }
  Field field{which < names.size() ? names[which] : std::to_string(which), array.dtype, row.shape};
  const std::size_t bytes = field.bytes();
  if (places != nullptr) {
    if (bytes == 0) {
      refuse_array(which, "has rows without values; expected some where lengths differ");
    }
    std::int64_t longest = 0;
    for (std::int64_t item = 0; item < items; ++item) {
      longest = std::max(longest, places[item + 1] - places[item]);
    }
    field.shape.insert(field.shape.begin(), longest);
    field.ragged = true;
  }
  fields_.push_back(std::move(field));
  columns_.push_back({array.data, array.strides[0], bytes, places});
}

std::int64_t ArraySource::extent(std::int64_t item, std::size_t field) const {
  const std::int64_t* starts = columns_[field].starts;
  return starts == nullptr ? Source::extent(item, field) : starts[item + 1] - starts[item];
}

std::uint64_t ArraySource::read(const ItemRequest& request, std::span<const Places> samples) const {
  for (std::size_t field = 0; field < columns_.size(); ++field) {
    const Column& column = columns_[field];
    const std::span<std::byte> to = samples[0][field];
    const std::int64_t row = column.starts == nullptr ? request.item : column.starts[request.item];
    const std::size_t bytes =
        column.starts == nullptr ? column.bytes : column.bytes * static_cast<std::size_t>(extent(request.item, field));
    if (bytes > 0) {
      std::memcpy(to.data(), column.data + row * column.stride, bytes);
    }
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(bytes), to.end(), std::byte{0});
  }
  return 0;
}

std::uint64_t ArraySource::gather(std::span<const ItemRequest> requests, std::span<const Rows> fields) const {
  constexpr std::size_t kAhead = 8;  // rows being prefetched from memory while one is copied
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.starts != nullptr; })) {
    return Source::gather(requests, fields);
  }
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
  const std::vector<std::int64_t> ragged = options.integers("ragged", {});
  options.done();
  return std::make_unique<ArraySource>(arrays, names, ragged);
}

}  // namespace

const SourceKind& arrays() {
  static const SourceKind kKind = {"arrays", open_arrays};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
