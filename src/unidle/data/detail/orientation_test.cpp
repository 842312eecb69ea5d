#include "unidle/data/detail/orientation.h"

#include <gtest/gtest.h>

#include <string>

#include "unidle/data/testing/pictures.h"

namespace unidle::data::detail {
namespace {

/// A JPEG with this EXIF orientation.
std::string photograph(int number) {
  std::string file = encode_jpeg(testing::test_picture(8, 8));
  std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01",
      28);
  exif += {'\0', static_cast<char>(number), '\0', '\0', '\0', '\0', '\0', '\0'};
  exif[3] = static_cast<char>(exif.size() - 2);
  return file.insert(2, exif);
}

Orientation oriented(int number) {
  const std::string file = photograph(number);
  return orientation_of(std::as_bytes(std::span(file)));
}

/// The shown picture of 2 x 3 pixels numbered row by row.
std::string shown(int number) {
  std::vector<std::uint8_t> stored;
  for (std::uint8_t pixel = 0; pixel < 6; ++pixel) {
    stored.insert(stored.end(), 3, pixel);
  }
  std::vector<std::uint8_t> turned;
  turn(oriented(number), stored.data(), 6, 2, 3, turned);
  std::string text;
  for (std::size_t i = 0; i < turned.size(); i += 3) {
    text += std::to_string(turned[i]);
  }
  return text;
}

TEST(OrientationTest, PixelsAreTurnedAsExifSays) {
  EXPECT_EQ(shown(0), "012345");
  EXPECT_EQ(shown(1), "012345");
  EXPECT_EQ(shown(2), "103254");
  EXPECT_EQ(shown(3), "543210");
  EXPECT_EQ(shown(4), "452301");
  EXPECT_EQ(shown(5), "024135");
  EXPECT_EQ(shown(6), "420531");
  EXPECT_EQ(shown(7), "531420");
  EXPECT_EQ(shown(8), "135024");
}

TEST(OrientationTest, PartsAreFoundWhereTheyAreStored) {
  const Region part{1, 2, 3, 4};
  for (int number = 1; number <= 8; ++number) {
    const Region stored = stored_region(oriented(number), part, 10, 20);
    const Region back = shown_region(oriented(number), stored, 10, 20);
    EXPECT_EQ(std::tie(back.x, back.y, back.width, back.height), std::tie(part.x, part.y, part.width, part.height));
  }
  const Region stored = stored_region(oriented(6), part, 10, 20);
  EXPECT_EQ(std::tuple(stored.x, stored.y, stored.width, stored.height), std::tuple(2, 6, 4, 3));
}

TEST(OrientationTest, EveryCutIsPassedOver) {
  const std::string whole = photograph(6);
  for (std::size_t bytes = 0; bytes <= 38; ++bytes) {
    const bool all = bytes >= 38;
    EXPECT_EQ(orientation_of(std::as_bytes(std::span(whole).first(bytes))).transposed, all) << bytes;
  }
}

}  // namespace
}  // namespace unidle::data::detail
