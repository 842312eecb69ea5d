#include "unidle/data/detail/webp.h"

#include <gtest/gtest.h>

#include "unidle/base/error.h"
#include "unidle/data/testing/pictures.h"

#ifdef UNIDLE_HAS_WEBP
#include <webp/encode.h>
#endif

namespace unidle::data {
namespace {

#ifdef UNIDLE_HAS_WEBP

std::string encode_webp(const Picture& picture) {
  std::uint8_t* bytes = nullptr;
  const std::size_t size =
      WebPEncodeLosslessRGB(picture.pixels.data(), picture.width, picture.height, picture.width * 3, &bytes);
  std::string text(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return text;
}

TEST(WebpTest, GivesThePixelsAndAnyPartOfThem) {
  const Picture picture = testing::test_picture(37, 23);
  const std::string webp = encode_webp(picture);
  ImageDecoder decoder;
  const Picture whole = decoder.decode(testing::bytes_of(webp), "a.webp");
  EXPECT_EQ(whole.pixels, picture.pixels);
  const ImageDecoder::View part = decoder.decode_region(testing::bytes_of(webp), "a.webp", {5, 7, 11, 3});
  EXPECT_EQ(part.info.format, ImageFormat::kWebp);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t byte = 0; byte < 33; ++byte) {
      ASSERT_EQ(part.pixels[row * part.stride + byte], picture.pixels[((7 + row) * 37 + 5) * 3 + byte]);
    }
  }
}

TEST(WebpTest, EveryCutFileIsAnError) {
  const std::string webp = encode_webp(testing::test_picture(16, 9));
  ImageDecoder decoder;
  for (std::size_t bytes = 0; bytes + 1 < webp.size(); ++bytes) {
    try {
      decoder.decode(testing::bytes_of(webp.substr(0, bytes)), "a.webp");
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
    }
  }
}

#else

TEST(WebpTest, IsRefusedByNameWithoutItsLibrary) {
  const std::string webp = "RIFF\x10\x00\x00\x00WEBPVP8 ";
  EXPECT_THROW(probe_image(testing::bytes_of(webp), "a.webp"), Error);
}

#endif

}  // namespace
}  // namespace unidle::data
