// Undoes the PNG row filters (PNG specification, section 9), the step after inflation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unidle::data::detail {

/// Writable bytes that must follow the last used byte of each unfiltered row: pixels are written as 4 bytes.
constexpr std::size_t kRowSlackBytes = 4;

/// Inflated rows: a filter byte, then the pixels.
struct FilteredRows {
  const std::uint8_t* data;  // the filter byte of row 0; readable 4 bytes beyond the last row
  std::size_t stride;        // 1 + bytes per row
};

/// Destination of the rows: row r at data + r * stride. A readable row must precede the first one written; above row 0
/// of the picture it must be zero. REQUIRES: stride >= width * bytes per pixel + kRowSlackBytes.
struct PlainRows {
  std::uint8_t* data;
  std::size_t stride;
};

/// Unfilters rows [first, last) of pixels [0, width), RGB or RGBA (`bytes_per_pixel` 3 or 4). Returns false for an
/// unknown filter.
bool unfilter(const FilteredRows& rows, int first, int last, int width, int bytes_per_pixel, const PlainRows& out);

/// True for filters that do not use the row above: none and sub.
inline bool stands_alone(std::uint8_t filter) { return filter <= 1; }

}  // namespace unidle::data::detail
