#include "unidle/data/image.h"

#include <gtest/gtest.h>
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/random.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data {
namespace {

using testing::bytes_of;
using testing::encode_any_png;
using testing::PngShape;
using testing::test_picture;

constexpr bool kBoth[] = {false, true};  // the fast decoder, and libspng alone

ImageDecoder decoder(bool only_reference) {
  ImageDecoder result;
  result.use_reference_png(only_reference);
  return result;
}

/// The region's pixels, without row padding.
std::vector<std::uint8_t> region_of(const ImageDecoder::View& view) {
  std::vector<std::uint8_t> pixels;
  for (int row = 0; row < view.region.height; ++row) {
    const std::uint8_t* line = view.pixels + static_cast<std::size_t>(row) * view.stride;
    pixels.insert(pixels.end(), line, line + view.region.width * 3);
  }
  return pixels;
}

std::vector<std::uint8_t> region_of(const Picture& picture, const Region& region) {
  const std::size_t stride = static_cast<std::size_t>(picture.width) * 3;
  const std::size_t corner = static_cast<std::size_t>(region.y) * stride + static_cast<std::size_t>(region.x) * 3;
  return region_of({{}, region, picture.pixels.data() + corner, stride});
}

/// The code and subject of the error that decoding throws; kInternal when it throws nothing.
ErrorCode failure(ImageDecoder& decoder, const std::string& file, std::string* message = nullptr) {
  try {
    decoder.decode(bytes_of(file), "some/file.png");
  } catch (const Error& error) {
    EXPECT_EQ(error.subject(), "some/file.png");
    EXPECT_FALSE(error.message().empty());
    if (message != nullptr) {
      *message = error.message();
    }
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(ImagePngTest, RoundTrips) {
  const Picture picture = test_picture(61, 47);
  const std::string file = encode_png(picture);
  for (const bool reference : kBoth) {
    const Picture back = decoder(reference).decode(bytes_of(file), "x");
    EXPECT_EQ(back.width, 61);
    EXPECT_EQ(back.height, 47);
    EXPECT_EQ(back.pixels, picture.pixels);
  }
}

TEST(ImagePngTest, EveryFilterSizeAndCompressionGivesTheSamePixels) {
  ImageDecoder fast = decoder(false);
  ImageDecoder reference = decoder(true);
  for (const int filters : {0, int{SPNG_FILTER_CHOICE_NONE}, int{SPNG_FILTER_CHOICE_SUB}, int{SPNG_FILTER_CHOICE_UP},
                            int{SPNG_FILTER_CHOICE_AVG}, int{SPNG_FILTER_CHOICE_PAETH}}) {
    for (const int width : {1, 2, 3, 5, 6, 7, 8, 33}) {
      for (const int height : {1, 2, 3, 4, 5, 9, 18}) {
        for (const int compression : {0, 1, 9}) {
          const Picture picture = test_picture(width, height, static_cast<std::uint64_t>(width * 100 + height));
          const std::string file =
              encode_any_png(width, height, picture.pixels, {.filters = filters, .compression = compression});
          ASSERT_EQ(fast.decode(bytes_of(file), "x").pixels, picture.pixels)
              << filters << " " << width << "x" << height;
          ASSERT_EQ(reference.decode(bytes_of(file), "x").pixels, picture.pixels);
        }
      }
    }
  }
}

TEST(ImagePngTest, AnyRegionIsThatPartOfThePicture) {
  CounterRandom random{3};
  for (const int filters : {0, int{SPNG_FILTER_CHOICE_PAETH}, int{SPNG_FILTER_CHOICE_PAETH | SPNG_FILTER_CHOICE_SUB}}) {
    const Picture picture = test_picture(150, 130);
    const std::string file = encode_any_png(150, 130, picture.pixels, {.filters = filters});
    for (const bool reference : kBoth) {
      ImageDecoder some = decoder(reference);
      for (int round = 0; round < 100; ++round) {
        const auto x = static_cast<int>(random.below(150));
        const auto y = static_cast<int>(random.below(130));
        const Region region{x, y, 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(150 - x))),
                            1 + static_cast<int>(random.below(static_cast<std::uint32_t>(130 - y)))};
        ASSERT_EQ(region_of(some.decode_region(bytes_of(file), "x", region)), region_of(picture, region));
      }
    }
  }
}

TEST(ImagePngTest, RegionsOutsideAreRefused) {
  const std::string file = encode_png(test_picture(20, 10));
  for (const Region& region : {Region{0, 0, 21, 10}, Region{-1, 0, 5, 5}, Region{0, 6, 5, 5}, Region{0, 0, 0, 5},
                               Region{2000000000, 0, 2000000000, 1}}) {
    EXPECT_THROW(ImageDecoder().decode_region(bytes_of(file), "x", region), Error);
  }
}

TEST(ImagePngTest, AlphaIsDropped) {
  const Picture picture = test_picture(30, 20);
  std::vector<std::uint8_t> raw;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    raw.insert(raw.end(),
               {picture.pixels[i], picture.pixels[i + 1], picture.pixels[i + 2], static_cast<std::uint8_t>(i % 251)});
  }
  const std::string file = encode_any_png(30, 20, raw, {.colour_type = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA});
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    EXPECT_EQ(some.decode(bytes_of(file), "x").pixels, picture.pixels);
    const Region region{4, 5, 9, 8};
    EXPECT_EQ(region_of(some.decode_region(bytes_of(file), "x", region)), region_of(picture, region));
  }
}

TEST(ImagePngTest, GrayIsRepeated) {
  std::vector<std::uint8_t> raw(12 * 5);
  std::iota(raw.begin(), raw.end(), std::uint8_t{7});
  const std::string file = encode_any_png(12, 5, raw, {.colour_type = SPNG_COLOR_TYPE_GRAYSCALE});
  const Picture picture = ImageDecoder().decode(bytes_of(file), "x");
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_EQ(picture.pixels[3 * i], raw[i]);
    EXPECT_EQ(picture.pixels[3 * i + 1], raw[i]);
    EXPECT_EQ(picture.pixels[3 * i + 2], raw[i]);
  }
}

TEST(ImagePngTest, OneBitGrayIsBlackAndWhite) {
  const std::vector<std::uint8_t> raw{0b10100000, 0b01000000};
  const std::string file = encode_any_png(3, 2, raw, {.colour_type = SPNG_COLOR_TYPE_GRAYSCALE, .bit_depth = 1});
  const Picture picture = ImageDecoder().decode(bytes_of(file), "x");
  std::vector<int> seen;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    seen.push_back(picture.pixels[i]);
  }
  EXPECT_EQ(seen, (std::vector<int>{255, 0, 255, 0, 255, 0}));
}

TEST(ImagePngTest, PalettesAreLookedUp) {
  const std::vector<std::uint8_t> raw{0, 10, 200, 255};
  const std::string file = encode_any_png(2, 2, raw, {.colour_type = SPNG_COLOR_TYPE_INDEXED});
  EXPECT_EQ(ImageDecoder().decode(bytes_of(file), "x").pixels,
            (std::vector<std::uint8_t>{0, 255, 0, 10, 245, 5, 200, 55, 100, 255, 0, 127}));
}

TEST(ImagePngTest, SixteenBitsKeepTheHighByte) {
  const std::uint16_t samples[] = {0x1234, 0xfffe, 0x00ff, 0x8000, 0x7fff, 0x0100};
  const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(samples), sizeof samples);
  const std::string file = encode_any_png(2, 1, raw, {.bit_depth = 16});
  EXPECT_EQ(ImageDecoder().decode(bytes_of(file), "x").pixels,
            (std::vector<std::uint8_t>{0x12, 0xff, 0x00, 0x80, 0x7f, 0x01}));
}

TEST(ImagePngTest, InterlacedIsDecoded) {
  const Picture picture = test_picture(37, 29);
  const std::string file = encode_any_png(37, 29, picture.pixels, {.interlaced = true});
  ASSERT_EQ(file[28], 1);
  const Region region{10, 11, 12, 13};
  ImageDecoder some;
  EXPECT_EQ(region_of(some.decode_region(bytes_of(file), "x", region)), region_of(picture, region));
}

TEST(ImageDamageTest, EveryTruncationFails) {
  const std::string file = encode_png(test_picture(24, 18));
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    for (std::size_t length = 0; length < file.size(); ++length) {
      ASSERT_EQ(failure(some, file.substr(0, length)), ErrorCode::kInput) << length;
    }
    ASSERT_EQ(failure(some, file), ErrorCode::kInternal);
  }
}

TEST(ImageDamageTest, ALostEndFailsForEveryRegion) {
  const std::string file = encode_png(test_picture(200, 200), 1);
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    const std::string cut = file.substr(0, file.size() * 9 / 10);
    EXPECT_THROW(some.decode_region(bytes_of(cut), "x", {0, 0, 10, 10}), Error);
  }
}

TEST(ImageDamageTest, EveryFlippedBitFailsOrDoesNotMatter) {
  const Picture picture = test_picture(12, 10);
  const std::string file = encode_png(picture);
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    int failed = 0;
    for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
      std::string damaged = file;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      try {
        ASSERT_EQ(some.decode(bytes_of(damaged), "x").pixels, picture.pixels) << "bit " << bit;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kInput);
        ++failed;
      }
    }
    EXPECT_GT(failed, static_cast<int>(file.size() * 8 * 9 / 10));
  }
}

TEST(ImageDamageTest, DamageBehindRightChecksumsIsSurvived) {
  // Feeds nonsense to inflation and filters; pixels may come out, memory must stay intact.
  const std::string file = encode_png(test_picture(40, 40));
  CounterRandom random{17};
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    int failed = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string damaged = file;
      for (std::uint32_t i = 0; i <= random.below(3); ++i) {
        damaged[33 + random.below(static_cast<std::uint32_t>(file.size()) - 33)] = static_cast<char>(random.next());
      }
      testing::repair_crcs(damaged);
      const Region region = round % 2 == 0 ? Region{} : Region{3, 5, 20, 21};
      try {
        const ImageDecoder::View view = some.decode_region(bytes_of(damaged), "x", region);
        region_of(view);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kInput);
        ++failed;
      }
    }
    EXPECT_GT(failed, 300);
  }
}

TEST(ImageDamageTest, AHugeSizeInASmallFileAsksForNoMemory) {
  for (const int at : {16, 20}) {  // width, height
    for (const bool reference : kBoth) {
      std::string file = encode_png(test_picture(16, 16));
      file[static_cast<std::size_t>(at)] = '\x00';
      file[static_cast<std::size_t>(at) + 1] = '\xff';
      testing::repair_crcs(file);
      ImageDecoder some = decoder(reference);
      EXPECT_EQ(failure(some, file), ErrorCode::kInput);
      file[static_cast<std::size_t>(at)] = '\x7f';
      testing::repair_crcs(file);
      EXPECT_EQ(failure(some, file), ErrorCode::kInput);
    }
  }
}

TEST(ImageDamageTest, AnUnknownFilterFails) {
  std::string file = encode_any_png(6, 6, test_picture(6, 6).pixels, {.compression = 0});
  const std::size_t data = file.find("IDAT") + 4 + 2 + 5;  // zlib header, stored block header
  ASSERT_LE(file[data], 4);
  file[data] = 9;
  testing::repair_crcs(file);
  for (const bool reference : kBoth) {
    ImageDecoder some = decoder(reference);
    EXPECT_EQ(failure(some, file), ErrorCode::kInput);
  }
}

TEST(ImageDamageTest, OtherFilesAreNamed) {
  ImageDecoder some;
  std::string message;
  EXPECT_EQ(failure(some, "", &message), ErrorCode::kInput);
  EXPECT_NE(message.find("empty"), std::string::npos);
  EXPECT_EQ(failure(some, "GIF89a and more", &message), ErrorCode::kInput);
  EXPECT_NE(message.find("neither PNG nor JPEG nor WebP"), std::string::npos);
  EXPECT_EQ(failure(some, std::string("\x89PNG\r\n\x1a\n", 8)), ErrorCode::kInput);
  EXPECT_EQ(failure(some, "\xff\xd8 not really"), ErrorCode::kInput);
}

TEST(ImageJpegTest, IsNearTheOriginal) {
  Picture picture{64, 48, {}};
  for (int i = 0; i < 64 * 48; ++i) {
    const auto x = static_cast<std::uint8_t>(2 * (i % 64));
    picture.pixels.insert(picture.pixels.end(), {x, static_cast<std::uint8_t>(100 + i / 64), 90});
  }
  const std::string file = encode_jpeg(picture, 95);
  ImageDecoder some;
  const Picture back = some.decode(bytes_of(file), "x");
  ASSERT_EQ(back.pixels.size(), picture.pixels.size());
  for (std::size_t i = 0; i < back.pixels.size(); ++i) {
    ASSERT_NEAR(back.pixels[i], picture.pixels[i], 12);
  }
  const Region region{5, 6, 20, 21};
  EXPECT_EQ(region_of(some.decode_region(bytes_of(file), "x", region)), region_of(back, region));
}

TEST(ImageJpegTest, TruncationsFail) {
  const std::string file = encode_jpeg(test_picture(50, 40));
  ImageDecoder some;
  // Without the end marker all pixels are still present.
  for (std::size_t length = 0; length + 2 < file.size(); ++length) {
    ASSERT_EQ(failure(some, file.substr(0, length)), ErrorCode::kInput) << length << " of " << file.size();
  }
}

TEST(ImageJpegTest, DamageIsSurvived) {
  const std::string file = encode_jpeg(test_picture(50, 40));
  CounterRandom random{23};
  ImageDecoder some;
  int failed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = file;
    damaged[random.below(static_cast<std::uint32_t>(file.size()))] = static_cast<char>(random.next());
    try {
      some.decode_region(bytes_of(damaged), "x", {});
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInput);
      ++failed;
    }
  }
  EXPECT_GT(failed, 100);
}

TEST(ImageProbeTest, TellsFormatAndSize) {
  const ImageInfo png = probe_image(bytes_of(encode_png(test_picture(31, 17))), "x");
  EXPECT_EQ(png.format, ImageFormat::kPng);
  EXPECT_EQ(png.width, 31);
  EXPECT_EQ(png.height, 17);
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.jpg";
  write_file_atomic(path, encode_jpeg(test_picture(19, 23)));
  const ImageInfo jpeg = probe_image_file(path);
  EXPECT_EQ(jpeg.format, ImageFormat::kJpeg);
  EXPECT_EQ(jpeg.width, 19);
  EXPECT_EQ(jpeg.height, 23);
}

TEST(ImageProbeTest, NamesTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  for (const std::string& path : {(folder.path() / "missing.png").string(), folder.path().string()}) {
    try {
      probe_image_file(path);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), path);
    }
  }
}

TEST(ImagePhotoTest, PhotographsDecodeAsWithTheReference) {
  const char* photos = std::getenv("UNIDLE_PHOTOS");
  if (photos == nullptr) {
    GTEST_SKIP() << "UNIDLE_PHOTOS names no folder of photographs";
  }
  ImageDecoder fast = decoder(false);
  ImageDecoder reference = decoder(true);
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(photos)) {
    const std::string path = entry.path();
    if (path.ends_with(".png") || path.ends_with(".jpg")) {
      const std::string file = read_file(path);
      const Picture picture = fast.decode(bytes_of(file), path);
      EXPECT_EQ(picture.pixels, reference.decode(bytes_of(file), path).pixels) << path;
      const Region region{picture.width / 3, picture.height / 4, picture.width / 2, picture.height / 2};
      EXPECT_EQ(region_of(fast.decode_region(bytes_of(file), path, region)), region_of(picture, region)) << path;
      EXPECT_THROW(fast.decode(bytes_of(file.substr(0, file.size() / 2)), path), Error) << path;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace unidle::data
