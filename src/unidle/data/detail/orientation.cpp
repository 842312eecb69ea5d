#include "unidle/data/detail/orientation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace unidle::data::detail {

namespace {

std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t count, bool little) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = little ? at + count - 1 - i : at + i;
    value = value << 8 | static_cast<std::uint8_t>(bytes[place]);
  }
  return value;
}

/// Returns the value of the tag in the first directory of a TIFF file, which is EXIF's format.
std::optional<std::uint32_t> orientation_in_tiff(std::string_view tiff) {
  constexpr std::size_t kHead = 8;
  constexpr std::size_t kEntry = 12;  // tag, type, count, value
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const bool little = tiff.starts_with("II");
  if (tiff.size() < kHead || (!little && !tiff.starts_with("MM"))) {
    return std::nullopt;
  }
  const std::size_t directory = number(tiff, 4, 4, little);
  if (directory > tiff.size() - 2) {
    return std::nullopt;
  }
  const std::size_t entries = number(tiff, directory, 2, little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * kEntry;
    if (at + kEntry > tiff.size()) {
      return std::nullopt;
    }
    if (number(tiff, at, 2, little) == kOrientation) {
      const std::size_t bytes = number(tiff, at + 2, 2, little) == kShort ? 2 : 4;
      return number(tiff, at + 8, bytes, little);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> orientation_in_xmp(std::string_view xmp) {
  constexpr std::string_view kTag = "tiff:Orientation";
  for (std::size_t at = xmp.find(kTag); at != std::string_view::npos; at = xmp.find(kTag, at + 1)) {
    std::string_view rest = xmp.substr(at + kTag.size());
    if (!rest.starts_with("=\"") && !rest.starts_with('>')) {
      continue;
    }
    rest.remove_prefix(rest.front() == '>' ? 1 : 2);
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
      return static_cast<std::uint32_t>(rest.front() - '0');
    }
  }
  return std::nullopt;
}

/// Searches the segments before the pixels.
std::optional<std::uint32_t> orientation_in_jpeg(std::string_view file) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  constexpr auto kApp1 = static_cast<char>(0xe1);
  constexpr auto kScan = static_cast<char>(0xda);
  std::optional<std::uint32_t> xmp;
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != '\xff' || file[at + 1] == '\xff') {  // bytes between segments, written by some cameras
      ++at;
      continue;
    }
    if (file[at + 1] == kScan) {
      break;
    }
    const std::size_t bytes = number(file, at + 2, 2, false);
    if (bytes < 2 || bytes > file.size() - at - 2) {
      break;
    }
    const std::string_view body = file.substr(at + 4, bytes - 2);
    if (file[at + 1] == kApp1 && body.starts_with(kExif)) {
      if (const auto found = orientation_in_tiff(body.substr(kExif.size()))) {
        return found;
      }
    }
    if (file[at + 1] == kApp1 && body.starts_with(kXmp)) {
      xmp = orientation_in_xmp(body);
    }
    at += 2 + bytes;
  }
  return xmp;
}

std::optional<std::uint32_t> orientation_in_png(std::string_view file) {
  constexpr std::size_t kFrame = 12;  // length, type, CRC
  for (std::size_t at = 8; at + kFrame <= file.size();) {
    const std::size_t length = number(file, at, 4, false);
    if (length > file.size() - at - kFrame) {
      break;
    }
    if (file.substr(at + 4, 4) == "eXIf") {
      return orientation_in_tiff(file.substr(at + 8, length));
    }
    at += kFrame + length;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> orientation_in_webp(std::string_view file) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);  // some programs write this prefix here too
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t length = number(file, at + 4, 4, true);
    if (length > file.size() - at - 8) {
      break;
    }
    if (file.substr(at, 4) == "EXIF") {
      std::string_view body = file.substr(at + 8, length);
      body.remove_prefix(body.starts_with(kPrefix) ? kPrefix.size() : 0);
      return orientation_in_tiff(body);
    }
    at += 8 + length + length % 2;
  }
  return std::nullopt;
}

}  // namespace

Orientation orientation_of(std::span<const std::byte> bytes) {
  const std::string_view file = chars_of(bytes);
  std::optional<std::uint32_t> number;
  if (file.starts_with("\xff\xd8")) {
    number = orientation_in_jpeg(file);
  } else if (file.starts_with("\x89PNG")) {
    number = orientation_in_png(file);
  } else if (file.starts_with("RIFF")) {
    number = orientation_in_webp(file);
  }
  switch (number.value_or(1)) {
    case 2: return {false, true, false};
    case 3: return {false, true, true};
    case 4: return {false, false, true};
    case 5: return {true, false, false};
    case 6: return {true, true, false};
    case 7: return {true, true, true};
    case 8: return {true, false, true};
    default: return {};
  }
}

Region stored_region(Orientation orientation, Region shown, int width, int height) {
  Region region = shown;
  region.x = orientation.across ? width - shown.x - shown.width : shown.x;
  region.y = orientation.down ? height - shown.y - shown.height : shown.y;
  return orientation.transposed ? Region{region.y, region.x, region.height, region.width} : region;
}

Region shown_region(Orientation orientation, Region stored, int width, int height) {
  const Region region = orientation.transposed ? Region{stored.y, stored.x, stored.height, stored.width} : stored;
  const Orientation mirrored{false, orientation.across, orientation.down};
  return stored_region(mirrored, region, width, height);
}

void turn(Orientation orientation, const std::uint8_t* pixels, std::size_t stride, int width, int height,
          std::vector<std::uint8_t>& shown) {
  constexpr std::ptrdiff_t kPixel = 3;
  std::ptrdiff_t right = kPixel;  // from a shown pixel to the next one, in stored pixels
  auto below = static_cast<std::ptrdiff_t>(stride);
  if (orientation.transposed) {
    std::swap(right, below);
    std::swap(width, height);
  }
  const std::uint8_t* first =
      pixels + (orientation.across ? right * (width - 1) : 0) + (orientation.down ? below * (height - 1) : 0);
  right = orientation.across ? -right : right;
  below = orientation.down ? -below : below;
  const std::size_t bytes = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * kPixel;
  shown.resize(std::max(shown.size(), bytes));
  std::uint8_t* to = shown.data();
  for (int row = 0; row < height; ++row, first += below) {
    const std::uint8_t* from = first;
    for (int column = 0; column < width; ++column, from += right, to += kPixel) {
      std::memcpy(to, from, kPixel);
    }
  }
}

}  // namespace unidle::data::detail
