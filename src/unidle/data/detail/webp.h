// Decodes WebP with libwebp, if the build has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/data/image.h"

namespace unidle::data::detail {

#ifdef UNIDLE_HAS_WEBP
constexpr bool kReadsWebp = true;
#else
constexpr bool kReadsWebp = false;
#endif

bool is_webp(std::span<const std::byte> bytes);

/// Reads the header. Throws kInput for damage, for animations, and in builds without libwebp.
ImageInfo probe_webp(std::span<const std::byte> bytes, std::string_view subject);

/// Decodes all pixels to 8-bit RGB without alpha into `pixels`, which grows as needed. Throws kInput for damage and
/// truncation.
void decode_webp(std::span<const std::byte> bytes, const ImageInfo& info, std::string_view subject,
                 std::vector<std::uint8_t>& pixels);

}  // namespace unidle::data::detail
