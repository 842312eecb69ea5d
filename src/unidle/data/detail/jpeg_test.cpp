#include "unidle/data/detail/jpeg.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "unidle/base/error.h"
#include "unidle/data/random.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data::detail {
namespace {

using testing::bytes_of;
using testing::JpegShape;
using testing::test_picture;

std::string rows_of(const ImageDecoder::View& view, const Region& region) {
  std::string rows;
  const std::uint8_t* corner =
      view.pixels + static_cast<std::ptrdiff_t>(region.y - view.region.y) * static_cast<std::ptrdiff_t>(view.stride) +
      (region.x - view.region.x) * 3;
  for (int row = 0; row < region.height; ++row) {
    rows.append(reinterpret_cast<const char*>(corner + static_cast<std::size_t>(row) * view.stride),
                static_cast<std::size_t>(region.width) * 3);
  }
  return rows;
}

class JpegShapeTest : public ::testing::TestWithParam<JpegShape> {};

TEST_P(JpegShapeTest, ARegionHasThePixelsOfTheWholePicture) {
  CounterRandom random{7};
  JpegDecoder decoder;
  for (const auto& [width, height] : {std::pair{233, 171}, {64, 48}, {17, 99}, {1, 1}, {640, 30}}) {
    const std::string file = testing::encode_any_jpeg(test_picture(width, height), GetParam());
    const Region all{0, 0, width, height};
    const std::string whole = rows_of(decoder.decode(bytes_of(file), "a", all, 1), all);
    for (int round = 0; round < 60; ++round) {
      Region region;
      region.width = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(width)));
      region.height = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(height)));
      region.x = static_cast<int>(random.below(static_cast<std::uint32_t>(width - region.width + 1)));
      region.y = static_cast<int>(random.below(static_cast<std::uint32_t>(height - region.height + 1)));
      std::string expected;
      for (int row = region.y; row < region.y + region.height; ++row) {
        expected += whole.substr(static_cast<std::size_t>(row * width + region.x) * 3,
                                 static_cast<std::size_t>(region.width) * 3);
      }
      ASSERT_TRUE(rows_of(decoder.decode(bytes_of(file), "a", region, 1), region) == expected)
          << width << " x " << height << ": " << region.width << " x " << region.height << " at " << region.x << ", "
          << region.y;
    }
  }
}

TEST_P(JpegShapeTest, AShrunkenRegionCoversWhatWasAskedFor) {
  CounterRandom random{8};
  JpegDecoder decoder;
  const std::string file = testing::encode_any_jpeg(test_picture(233, 171), GetParam());
  for (const int shrink : {2, 4, 8}) {
    const auto whole = decoder.decode(bytes_of(file), "a", {0, 0, 233, 171}, shrink);
    const Region all = whole.region;
    EXPECT_EQ(all.width, (233 + shrink - 1) / shrink);
    EXPECT_EQ(all.height, (171 + shrink - 1) / shrink);
    const std::string pixels = rows_of(whole, all);
    for (int round = 0; round < 40; ++round) {
      Region region;
      region.width = 1 + static_cast<int>(random.below(233));
      region.height = 1 + static_cast<int>(random.below(171));
      region.x = static_cast<int>(random.below(static_cast<std::uint32_t>(233 - region.width + 1)));
      region.y = static_cast<int>(random.below(static_cast<std::uint32_t>(171 - region.height + 1)));
      const auto view = decoder.decode(bytes_of(file), "a", region, shrink);
      EXPECT_EQ(view.shrink, shrink);
      EXPECT_LE(view.region.x * shrink, region.x);
      EXPECT_LE(view.region.y * shrink, region.y);
      EXPECT_GE((view.region.x + view.region.width) * shrink, region.x + region.width);
      EXPECT_GE((view.region.y + view.region.height) * shrink, region.y + region.height);
      EXPECT_LE(view.region.x + view.region.width, all.width);
      EXPECT_LE(view.region.y + view.region.height, all.height);
      // Rows are complete in memory, wherever they begin.
      EXPECT_EQ(rows_of(view, view.region).size(),
                static_cast<std::size_t>(view.region.width) * static_cast<std::size_t>(view.region.height) * 3);
    }
  }
}

TEST_P(JpegShapeTest, EveryCutIsRefusedOrGivesThePicture) {
  const std::string file = testing::encode_any_jpeg(test_picture(40, 30), GetParam());
  JpegDecoder decoder;
  int refused = 0;
  for (std::size_t length = 0; length + 2 < file.size(); ++length) {  // a picture is complete without its end marker
    try {
      decoder.decode(bytes_of(file.substr(0, length)), "cut", {0, 0, 40, 30}, 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), "cut");
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(file.size()) * 9 / 10);
  EXPECT_EQ(decoder.decode(bytes_of(file), "whole", {0, 0, 40, 30}, 1).info.width, 40);
}

INSTANTIATE_TEST_SUITE_P(Kinds, JpegShapeTest,
                         ::testing::Values(JpegShape{2, 2, false, false}, JpegShape{2, 1, false, false},
                                           JpegShape{1, 1, false, false}, JpegShape{1, 2, false, false},
                                           JpegShape{4, 1, false, false}, JpegShape{2, 2, true, false},
                                           JpegShape{1, 1, true, false}, JpegShape{1, 1, false, true}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.across) + "x" + std::to_string(shape.param.down) +
                                  (shape.param.progressive ? "progressive" : "") + (shape.param.gray ? "gray" : "");
                         });

TEST(JpegTest, WithoutItsLastMarkerAPictureIsWhole) {
  const std::string file = encode_jpeg(test_picture(40, 30));
  JpegDecoder decoder;
  const Region all{0, 0, 40, 30};
  const auto pixels = [&](const std::string& bytes) {
    return rows_of(decoder.decode(bytes_of(bytes), "a", all, 1), all);
  };
  const auto whole = pixels(file);
  EXPECT_EQ(pixels(file.substr(0, file.size() - 2)), whole);
  EXPECT_THROW(pixels(file.substr(0, file.size() - 3)), Error);
}

TEST(JpegTest, BytesBetweenMarkersAreNoDamage) {
  std::string file = encode_jpeg(test_picture(40, 30));
  file.insert(2, 5, '\0');  // behind the first marker, as some cameras do
  JpegDecoder decoder;
  EXPECT_EQ(decoder.decode(bytes_of(file), "a", {0, 0, 40, 30}, 1).info.height, 30);
}

}  // namespace
}  // namespace unidle::data::detail
