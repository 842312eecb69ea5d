#include "unidle/data/detail/webp.h"

#include <cstring>
#include <string>

#include "unidle/base/error.h"

#ifdef UNIDLE_HAS_WEBP
#include <webp/decode.h>
#endif

namespace unidle::data::detail {

bool is_webp(std::span<const std::byte> bytes) {
  return bytes.size() >= 12 && std::memcmp(bytes.data(), "RIFF", 4) == 0 &&
         std::memcmp(bytes.data() + 8, "WEBP", 4) == 0;
}

#ifdef UNIDLE_HAS_WEBP

ImageInfo probe_webp(std::span<const std::byte> bytes, std::string_view subject) {
  WebPBitstreamFeatures features;
  const auto status = WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
  if (status != VP8_STATUS_OK) {
    throw Error(ErrorCode::kInput, std::string(subject), "WebP header cannot be read");
  }
  if (features.has_animation != 0) {
    throw Error(ErrorCode::kInput, std::string(subject), "is an animation; expected a picture");
  }
  check_picture_size(subject, features.width, features.height);
  return {ImageFormat::kWebp, features.width, features.height};
}

void decode_webp(std::span<const std::byte> bytes, const ImageInfo& info, std::string_view subject,
                 std::vector<std::uint8_t>& pixels) {
  pixels.resize(std::max(pixels.size(), info.rgb_bytes()));
  if (WebPDecodeRGBInto(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), pixels.data(), pixels.size(),
                        info.width * 3) == nullptr) {
    throw Error(ErrorCode::kInput, std::string(subject), "WebP is cut off or damaged");
  }
}

#else

namespace {

[[noreturn]] void refuse_webp(std::string_view subject) {
  throw Error(ErrorCode::kInput, std::string(subject), "is WebP, which this build of unidle does not read",
              "build it with libwebp-dev installed, or convert the picture");
}

}  // namespace

ImageInfo probe_webp(std::span<const std::byte>, std::string_view subject) { refuse_webp(subject); }

void decode_webp(std::span<const std::byte>, const ImageInfo&, std::string_view subject, std::vector<std::uint8_t>&) {
  refuse_webp(subject);
}

#endif

}  // namespace unidle::data::detail
