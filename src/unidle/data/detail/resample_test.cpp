#include "unidle/data/detail/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "unidle/data/random.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data::detail {
namespace {

/// The exact average under a triangle; each pass may round by at most 1.
double exact_pixel(const Picture& picture, double begin, double end, int out, int x, double top, double bottom,
                   int down, int y, int channel) {
  const auto weights = [](double first, double last, int count, int at, int limit) {
    const double scale = (last - first) / count;
    const double reach = std::max(scale, 1.0);
    const double centre = first + (at + 0.5) * scale;
    std::vector<double> shares(static_cast<std::size_t>(limit), 0.0);
    double sum = 0;
    for (int i = 0; i < limit; ++i) {
      const double share = std::max(0.0, 1 - std::abs(i + 0.5 - centre) / reach);
      shares[static_cast<std::size_t>(i)] = share;
      sum += share;
    }
    for (double& share : shares) {
      share /= sum;
    }
    return shares;
  };
  const std::vector<double> across = weights(begin, end, out, x, picture.width);
  const std::vector<double> along = weights(top, bottom, down, y, picture.height);
  double value = 0;
  for (std::size_t row = 0; row < along.size(); ++row) {
    for (std::size_t column = 0; along[row] > 0 && column < across.size(); ++column) {
      value += along[row] * across[column] *
               picture.pixels[(row * across.size() + column) * 3 + static_cast<std::size_t>(channel)];
    }
  }
  return value;
}

struct Wanted {
  int width;
  int height;
  Region window;
};

void expect_near_exact(const Picture& picture, double begin, double end, double top, double bottom,
                       const Wanted& wanted) {
  Taps across;
  Taps down;
  across.prepare(picture.width, begin, end, wanted.width, wanted.window.x, wanted.window.width);
  down.prepare(picture.height, top, bottom, wanted.height, wanted.window.y, wanted.window.height);
  Resampler resampler;
  const std::uint8_t* pixels =
      resampler.run(picture.pixels.data(), static_cast<std::size_t>(picture.width) * 3, 0, 0, across, down);
  for (int y = 0; y < wanted.window.height; ++y) {
    for (int x = 0; x < wanted.window.width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const double exact = exact_pixel(picture, begin, end, wanted.width, wanted.window.x + x, top, bottom,
                                         wanted.height, wanted.window.y + y, channel);
        ASSERT_NEAR(pixels[(y * wanted.window.width + x) * 3 + channel], exact, 1.01) << x << ", " << y;
      }
    }
  }
}

TEST(ResampleTest, IsTheAverageOfWhatAPixelCovers) {
  for (const auto& [width, height] : {std::pair{61, 47}, {20, 90}, {5, 3}, {1, 1}, {200, 16}}) {
    const Picture picture = testing::test_picture(width, height);
    for (const auto& [out, down] : {std::pair{32, 32}, {7, 50}, {64, 1}, {1, 1}, {11, 13}}) {
      expect_near_exact(picture, 0, width, 0, height, {out, down, {0, 0, out, down}});
    }
  }
}

TEST(ResampleTest, AWindowIsAPartOfTheWhole) {
  const Picture picture = testing::test_picture(90, 70);
  expect_near_exact(picture, 0, 90, 0, 70, {60, 40, {10, 5, 33, 21}});
  expect_near_exact(picture, 10.5, 71.25, 3, 55.5, {24, 24, {0, 0, 24, 24}});
}

TEST(ResampleTest, TheSameSizeIsTheSamePicture) {
  const Picture picture = testing::test_picture(37, 23);
  Taps across;
  Taps down;
  across.prepare(37, 0, 37, 37, 0, 37);
  down.prepare(23, 0, 23, 23, 0, 23);
  Resampler resampler;
  const std::uint8_t* pixels = resampler.run(picture.pixels.data(), 37 * 3, 0, 0, across, down);
  EXPECT_TRUE(std::vector<std::uint8_t>(pixels, pixels + picture.bytes()) == picture.pixels);
}

TEST(ResampleTest, OnlyWhatTheTapsTellIsRead) {
  // The part is in memory of exactly its size, so that a sanitizer detects reads beyond it.
  const Picture picture = testing::test_picture(80, 60);
  Taps across;
  Taps down;
  across.prepare(80, 0, 80, 40, 9, 20);
  down.prepare(60, 0, 60, 30, 4, 17);
  Resampler resampler;
  const std::uint8_t* whole = resampler.run(picture.pixels.data(), 80 * 3, 0, 0, across, down);
  const std::vector<std::uint8_t> expected(whole, whole + 20 * 17 * 3);
  std::vector<std::uint8_t> part;
  for (int row = down.begin(); row < down.end(); ++row) {
    const auto from = picture.pixels.begin() + (row * 80 + across.begin()) * 3;
    part.insert(part.end(), from, from + (across.end() - across.begin()) * 3);
  }
  part.shrink_to_fit();
  const auto stride = static_cast<std::size_t>(across.end() - across.begin()) * 3;
  const std::uint8_t* got = resampler.run(part.data(), stride, across.begin(), down.begin(), across, down);
  EXPECT_TRUE(std::vector<std::uint8_t>(got, got + expected.size()) == expected);
}

}  // namespace
}  // namespace unidle::data::detail
