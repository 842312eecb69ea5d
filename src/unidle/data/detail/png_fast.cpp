#include "unidle/data/detail/png_fast.h"

#ifdef UNIDLE_HAS_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#endif

#include <cstring>
#include <limits>
#include <vector>

#include "unidle/data/detail/big_endian.h"
#include "unidle/data/detail/png_filter.h"

namespace unidle::data::detail {

#ifdef UNIDLE_HAS_ISAL

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type, CRC
constexpr std::size_t kZlibFrame = 6;    // header and Adler-32

constexpr std::uint32_t type_of(const char (&name)[5]) {
  std::uint32_t type = 0;
  for (int i = 0; i < 4; ++i) {
    type = type << 8 | static_cast<std::uint8_t>(name[i]);
  }
  return type;
}

/// Finds the compressed data. Returns false when a chunk is damaged, truncated, out of order, or unknown and critical.
/// The CRC covers all compressed bytes, so whether a file counts as damaged does not depend on the region; the Adler-32
/// of the pixels would add nothing.
bool find_data(Bytes file, std::vector<Bytes>& data) {
  data.clear();
  bool data_over = false;
  for (std::size_t at = kSignatureBytes; file.size() - at >= kChunkFrame;) {
    const std::size_t length = big_endian(&file[at]);
    if (length > file.size() - at - kChunkFrame) {
      return false;
    }
    const std::uint32_t type = big_endian(&file[at + 4]);
    const bool critical = (file[at + 4] & 0x20) == 0;
    if (critical && crc32_gzip_refl(0, &file[at + 4], length + 4) != big_endian(&file[at + 8 + length])) {
      return false;
    }
    if (type == type_of("IDAT")) {
      if (data_over) {
        return false;
      }
      data.push_back(file.subspan(at + 8, length));
    } else if (type == type_of("IEND")) {
      return length == 0 && !data.empty();
    } else if (critical && (type != type_of("IHDR") || at != kSignatureBytes) && type != type_of("PLTE")) {
      return false;
    }
    data_over = !data.empty() && type != type_of("IDAT");
    at += kChunkFrame + length;
  }
  return false;
}

/// A buffer that grows without being cleared.
class Scratch {
 public:
  std::uint8_t* reserve(std::size_t bytes) {
    if (bytes > size_) {
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace

struct FastPng::State {
  inflate_state inflate;
  std::vector<Bytes> data;
  Scratch joined;
  Scratch filtered;
  Scratch plain;

  /// The compressed data in one piece: ISA-L copies its window at each call, so a single call is cheaper.
  Bytes joined_data();
  /// The first `bytes` bytes of the rows.
  const std::uint8_t* inflate_rows(std::size_t bytes);
};

Bytes FastPng::State::joined_data() {
  if (data.size() == 1) {
    return data.front();
  }
  std::size_t total = 0;
  for (const Bytes part : data) {
    total += part.size();
  }
  std::uint8_t* to = joined.reserve(total);
  for (const Bytes part : data) {
    if (!part.empty()) {
      std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
  }
  return {to - total, total};
}

const std::uint8_t* FastPng::State::inflate_rows(std::size_t bytes) {
  constexpr std::size_t kMostRatio = 1032;  // maximum ratio of deflate: 258 bytes from 2 bits
  const Bytes stream = joined_data();
  if (stream.size() < kZlibFrame || stream.size() > std::numeric_limits<std::int32_t>::max() ||
      stream.size() * kMostRatio < bytes) {
    return nullptr;
  }
  const bool zlib = (stream[0] & 0x0f) == 8 && (stream[0] >> 4) <= 7 && (stream[0] << 8 | stream[1]) % 31 == 0;
  if (const bool preset_dictionary = (stream[1] & 0x20) != 0; !zlib || preset_dictionary) {
    return nullptr;
  }
  std::uint8_t* rows = filtered.reserve(bytes + kRowSlackBytes);
  isal_inflate_init(&inflate);
  inflate.crc_flag = ISAL_DEFLATE;
  // The library's input pointer is not const, but it only reads.
  inflate.next_in = const_cast<std::uint8_t*>(stream.data()) + 2;
  inflate.avail_in = static_cast<std::uint32_t>(stream.size() - kZlibFrame);
  inflate.next_out = rows;
  inflate.avail_out = static_cast<std::uint32_t>(bytes);
  const int result = isal_inflate(&inflate);
  return result == ISAL_DECOMP_OK && inflate.avail_out == 0 ? rows : nullptr;
}

FastPng::FastPng() : state_(std::make_unique<State>()) {}
FastPng::~FastPng() = default;

bool FastPng::decode(std::span<const std::byte> bytes, const ImageInfo& info, Region region, ImageDecoder::View& view) {
  const Bytes file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  constexpr std::size_t kBitDepthAt = 24;  // followed by colour type, compression, filter method, interlace
  const std::uint8_t* header = &file[kBitDepthAt];
  const bool rgb = header[1] == 2;
  if (header[0] != 8 || (!rgb && header[1] != 6) || header[2] != 0 || header[3] != 0 || header[4] != 0) {
    return false;
  }
  if (!find_data(file, state_->data)) {
    return false;
  }
  const std::size_t pixel = rgb ? 3 : 4;
  const std::size_t stride = 1 + static_cast<std::size_t>(info.width) * pixel;
  const int last = region.y + region.height;
  const std::uint8_t* filtered = state_->inflate_rows(stride * static_cast<std::size_t>(last));
  if (filtered == nullptr) {
    return false;
  }
  int first = region.y;
  while (first > 0 && !stands_alone(filtered[static_cast<std::size_t>(first) * stride])) {
    --first;
  }
  const int width = region.x + region.width;
  const std::size_t out_stride = static_cast<std::size_t>(width) * pixel + kRowSlackBytes;
  std::uint8_t* plain = state_->plain.reserve(out_stride * static_cast<std::size_t>(last - first + 1));
  std::memset(plain, 0, out_stride);  // the row above the first one
  std::uint8_t* top = plain + out_stride;
  const FilteredRows rows{filtered + static_cast<std::size_t>(first) * stride, stride};
  if (!unfilter(rows, 0, last - first, width, static_cast<int>(pixel), {top, out_stride})) {
    return false;
  }
  std::uint8_t* corner =
      top + static_cast<std::size_t>(region.y - first) * out_stride + static_cast<std::size_t>(region.x) * pixel;
  if (!rgb) {
    for (int row = 0; row < region.height; ++row) {
      std::uint8_t* line = corner + static_cast<std::size_t>(row) * out_stride;
      for (std::size_t x = 0; x < static_cast<std::size_t>(region.width); ++x) {
        std::memmove(line + x * 3, line + x * 4, 3);
      }
    }
  }
  view = {info, region, corner, out_stride};
  return true;
}

#else

struct FastPng::State {};
FastPng::FastPng() = default;
FastPng::~FastPng() = default;
bool FastPng::decode(std::span<const std::byte>, const ImageInfo&, Region, ImageDecoder::View&) { return false; }

#endif

}  // namespace unidle::data::detail
