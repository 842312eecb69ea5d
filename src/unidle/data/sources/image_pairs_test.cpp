#include "unidle/data/sources/image_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data {
namespace {

using testing::test_picture;
using testing::write_pair;

constexpr int kPairs = 6;

class ImagePairsTest : public ::testing::Test {
 protected:
  ImagePairsTest() {
    for (int i = 0; i < kPairs; ++i) {
      write_pair(folder_.path(), "p" + std::to_string(i) + ".png", high(i));
    }
  }

  static Picture high(int i) { return test_picture(64 + 8 * i, 80 - 4 * i, static_cast<std::uint64_t>(i + 1)); }
  std::string path() const { return folder_.path().string(); }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The code and subject of the error when the folder is opened.
  std::pair<ErrorCode, std::string> failure(const ImagePairOptions& options = {.crop = 32}) const {
    return failure_of([&] { ImagePairSource source(path(), options); });
  }
  template <typename Function>
  static std::pair<ErrorCode, std::string> failure_of(const Function& function) {
    try {
      function();
    } catch (const Error& error) {
      return {error.code(), error.subject()};
    }
    return {ErrorCode::kInternal, "nothing was thrown"};
  }
  static std::pair<ErrorCode, std::string> input_error(std::string subject) {
    return {ErrorCode::kInput, std::move(subject)};
  }

  TemporaryFolder folder_;
};

struct Sample {
  std::vector<std::byte> low;
  std::vector<std::byte> high;
  bool operator==(const Sample&) const = default;
};

std::vector<Sample> read(const ImagePairSource& source, const ItemRequest& request) {
  std::vector<Sample> samples(static_cast<std::size_t>(source.samples_per_item()));
  std::vector<Places> places;
  for (Sample& sample : samples) {
    sample.low.resize(source.fields()[0].bytes());
    sample.high.resize(source.fields()[1].bytes());
    places.push_back({sample.low, sample.high});
  }
  source.read(request, places);
  return samples;
}

/// The number of matching places of the sample in the picture, also mirrored.
int count_places(const Picture& picture, const std::vector<std::byte>& sample, int side, int step, bool mirrored) {
  int found = 0;
  for (int y = 0; y + side <= picture.height; y += step) {
    for (int x = 0; x + side <= picture.width; x += step) {
      bool same = true;
      for (int row = 0; same && row < side; ++row) {
        for (int column = 0; same && column < side; ++column) {
          const int from = mirrored ? side - 1 - column : column;
          const auto at = static_cast<std::size_t>((y + row) * picture.width + x + from) * 3;
          same = std::memcmp(&picture.pixels[at], &sample[static_cast<std::size_t>(row * side + column) * 3], 3) == 0;
        }
      }
      found += same ? 1 : 0;
    }
  }
  return found;
}

TEST_F(ImagePairsTest, DescribesItself) {
  const ImagePairSource source(path(), {.crop = 32, .crops_per_item = 3});
  EXPECT_EQ(source.items(), kPairs);
  EXPECT_EQ(source.samples_per_item(), 3);
  ASSERT_EQ(source.fields().size(), 2u);
  EXPECT_EQ(source.fields()[0].name, "low");
  EXPECT_EQ(source.fields()[0].shape, (std::vector<std::int64_t>{8, 8, 3}));
  EXPECT_EQ(source.fields()[1].name, "high");
  EXPECT_EQ(source.fields()[1].shape, (std::vector<std::int64_t>{32, 32, 3}));
  EXPECT_EQ(source.name(2), "p2.png");
}

TEST_F(ImagePairsTest, BothOfAPairShowTheSamePart) {
  const ImagePairSource source(path(), {.crop = 32, .crops_per_item = 4});
  int mirrored = 0;
  for (std::int64_t item = 0; item < kPairs; ++item) {
    const Picture whole = high(static_cast<int>(item));
    for (const Sample& sample : read(source, {item, 3, 1})) {
      const int straight = count_places(whole, sample.high, 32, 4, false);
      const int mirror = count_places(whole, sample.high, 32, 4, true);
      ASSERT_EQ(straight + mirror, 1) << "aligned to the scale, and found once";
      mirrored += mirror;
      // The low picture holds every fourth pixel of the high one; in a mirrored part, the last of each four.
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
          const int from = (y * 4) * 32 + x * 4 + (mirror != 0 ? 3 : 0);
          ASSERT_EQ(std::memcmp(&sample.low[static_cast<std::size_t>(y * 8 + x) * 3],
                                &sample.high[static_cast<std::size_t>(from) * 3], 3),
                    0);
        }
      }
    }
  }
  EXPECT_GT(mirrored, 3);
  EXPECT_LT(mirrored, 4 * kPairs - 3);
}

TEST_F(ImagePairsTest, FlipCanBeOff) {
  const ImagePairSource source(path(), {.crop = 32, .crops_per_item = 8, .flip = false});
  for (const Sample& sample : read(source, {0, 0, 1})) {
    EXPECT_EQ(count_places(high(0), sample.high, 32, 4, false), 1);
  }
}

TEST_F(ImagePairsTest, CropsDifferByEpochSeedAndCropAndRepeatExactly) {
  const ImagePairSource source(path(), {.crop = 16, .crops_per_item = 3});
  const std::vector<Sample> samples = read(source, {1, 0, 5});
  EXPECT_EQ(read(source, {1, 0, 5}), samples);
  EXPECT_NE(read(source, {1, 1, 5}), samples);
  EXPECT_NE(read(source, {1, 0, 6}), samples);
  EXPECT_NE(samples[0], samples[1]);
}

TEST_F(ImagePairsTest, CropsReachEveryEdge) {
  const ImagePairSource source(path(), {.crop = 56, .crops_per_item = 64, .flip = false});
  const Picture whole = high(0);  // 64 x 80: 3 x 7 possible places
  std::set<std::vector<std::byte>> seen;
  for (const Sample& sample : read(source, {0, 0, 1})) {
    seen.insert(sample.high);
  }
  EXPECT_GE(seen.size(), 18u);
  EXPECT_LE(seen.size(), 21u);
}

TEST_F(ImagePairsTest, AWholePictureCanBeTheCrop) {
  const TemporaryFolder folder;
  const Picture picture = test_picture(32, 32);
  write_pair(folder.path(), "a.png", picture);
  const ImagePairSource source(folder.path(), {.crop = 32, .flip = false});
  const Sample sample = read(source, {0, 9, 9}).front();
  EXPECT_EQ(std::memcmp(sample.high.data(), picture.pixels.data(), picture.bytes()), 0);
}

TEST_F(ImagePairsTest, TheCacheChangesNothingThatIsDelivered) {
  const auto deliver = [&](std::size_t cache_bytes, int workers) {
    const ImagePairSource source(path(), {.crop = 32, .crops_per_item = 3, .cache_bytes = cache_bytes});
    Loader loader(source, {.batch = 4, .workers = workers, .seed = 2});
    std::vector<std::vector<std::byte>> batches;
    for (int i = 0; i < 20; ++i) {
      const Batch batch = loader.next();
      batches.emplace_back(batch.field(0), batch.field(0) + 4 * 8 * 8 * 3);
      batches.emplace_back(batch.field(1), batch.field(1) + 4 * 32 * 32 * 3);
    }
    EXPECT_LE(source.cache().used_bytes(), cache_bytes);
    return batches;
  };
  const auto expected = deliver(0, 0);
  EXPECT_EQ(deliver(100 << 20, 0), expected);
  EXPECT_EQ(deliver(100 << 20, 4), expected);
  EXPECT_EQ(deliver(40000, 2), expected);  // some pictures fit
  EXPECT_EQ(deliver(0, 4), expected);
}

TEST_F(ImagePairsTest, TellsWhatWasReadFromStorage) {
  const ImagePairSource source(path(), {.crop = 32, .cache_bytes = 100 << 20});
  const ImagePairSource uncached(path(), {.crop = 32});
  const std::uint64_t size =
      std::filesystem::file_size(file("low/p0.png")) + std::filesystem::file_size(file("high/p0.png"));
  std::vector<std::byte> low(source.fields()[0].bytes());
  std::vector<std::byte> high_part(source.fields()[1].bytes());
  const std::vector<Places> places{{low, high_part}};
  EXPECT_EQ(source.read({0, 0, 0}, places), size);
  EXPECT_EQ(source.read({0, 0, 0}, places), 0u);
  EXPECT_EQ(uncached.read({0, 0, 0}, places), size);
  EXPECT_EQ(uncached.read({0, 0, 0}, places), size);
}

TEST_F(ImagePairsTest, ReadPairGivesBothWhole) {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{100} << 20}) {
    const ImagePairSource source(path(), {.crop = 32, .cache_bytes = cache_bytes});
    const ImagePairSource::Pair pair = source.read_pair(3);
    EXPECT_EQ(pair.high->pixels, high(3).pixels);
    EXPECT_EQ(pair.low->width * 4, pair.high->width);
    EXPECT_EQ(pair.low->height * 4, pair.high->height);
  }
}

TEST_F(ImagePairsTest, JpegPairsWorkToo) {
  const TemporaryFolder folder;
  write_pair(folder.path(), "a.png", test_picture(64, 64));
  write_file_atomic(folder.path() / "high/b.jpg", encode_jpeg(test_picture(64, 48)));
  write_file_atomic(folder.path() / "low/b.jpg", encode_jpeg(test_picture(16, 12)));
  const ImagePairSource source(folder.path(), {.crop = 32});
  EXPECT_EQ(source.items(), 2);
  EXPECT_EQ(count_places(*source.read_pair(1).high, read(source, {1, 0, 0}).front().high, 32, 4, false) +
                count_places(*source.read_pair(1).high, read(source, {1, 0, 0}).front().high, 32, 4, true),
            1);
}

TEST_F(ImagePairsTest, RefusesOptionsThatMakeNoSense) {
  for (const ImagePairOptions& options :
       {ImagePairOptions{.crop = 0}, ImagePairOptions{.crop = 30}, ImagePairOptions{.crop = 32, .scale = 0},
        ImagePairOptions{.crop = 32, .crops_per_item = 0}}) {
    EXPECT_EQ(failure(options).first, ErrorCode::kUsage);
  }
}

TEST_F(ImagePairsTest, NamesAMissingFolder) {
  EXPECT_EQ(failure_of([] { ImagePairSource source("/nowhere/at/all", {.crop = 32}); }),
            input_error("/nowhere/at/all"));
  std::filesystem::remove_all(file("low"));
  EXPECT_EQ(failure(), input_error(file("low")));
}

TEST_F(ImagePairsTest, NamesAnEmptyFolder) {
  const TemporaryFolder folder;
  make_folders(folder.path() / "low");
  make_folders(folder.path() / "high");
  write_file_atomic(folder.path() / "high/readme.txt", "no picture");
  EXPECT_EQ(failure_of([&] { ImagePairSource source(folder.path(), {.crop = 32}); }),
            input_error((folder.path() / "high").string()));
}

TEST_F(ImagePairsTest, NamesAPictureWithoutPartner) {
  std::filesystem::remove(file("low/p2.png"));
  EXPECT_EQ(failure(), input_error(file("high/p2.png")));
  std::filesystem::remove(file("high/p2.png"));
  std::filesystem::remove(file("high/p5.png"));
  EXPECT_EQ(failure(), input_error(file("low/p5.png")));
}

TEST_F(ImagePairsTest, NamesAPictureOfTheWrongSize) {
  write_file_atomic(file("low/p3.png"), encode_png(test_picture(10, 10)));
  EXPECT_EQ(failure(), input_error(file("low/p3.png")));
}

TEST_F(ImagePairsTest, NamesAPictureSmallerThanTheCrop) {
  EXPECT_EQ(failure({.crop = 64}), input_error(file("high/p5.png")));  // 60 high
}

TEST_F(ImagePairsTest, NamesADamagedHeader) {
  write_file_atomic(file("high/p1.png"), "not a picture");
  EXPECT_EQ(failure(), input_error(file("high/p1.png")));
}

TEST_F(ImagePairsTest, NamesAPictureTruncatedWhileTraining) {
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{100} << 20}) {
    const std::string path_of_one = file("high/p4.png");
    const std::string whole = read_file(path_of_one);
    const ImagePairSource source(path(), {.crop = 32, .cache_bytes = cache_bytes});
    write_file_atomic(path_of_one, whole.substr(0, whole.size() * 3 / 4));
    Loader loader(source, {.batch = kPairs, .workers = 2});
    EXPECT_EQ(failure_of([&] { loader.next(); }), input_error(path_of_one));
    write_file_atomic(path_of_one, whole);
  }
}

TEST_F(ImagePairsTest, NamesAPictureThatChangedItsSize) {
  const ImagePairSource source(path(), {.crop = 32});
  write_file_atomic(file("high/p0.png"), encode_png(test_picture(200, 200)));
  EXPECT_EQ(failure_of([&] { read(source, {0, 0, 0}); }), input_error(file("high/p0.png")));
  EXPECT_EQ(failure_of([&] { source.read_pair(0); }), input_error(file("high/p0.png")));
  std::filesystem::remove(file("high/p0.png"));
  EXPECT_EQ(failure_of([&] { read(source, {0, 0, 0}); }), input_error(file("high/p0.png")));
}

TEST_F(ImagePairsTest, SkippedPairsAreReplaced) {
  const ImagePairSource source(path(), {.crop = 32});
  write_file_atomic(file("high/p2.png"), "gone bad");
  Loader loader(source, {.batch = kPairs, .workers = 3, .shuffle = false, .on_error = ErrorPolicy::kReplace});
  const Batch batch = loader.next();
  EXPECT_EQ(loader.skipped(), 1);
  EXPECT_EQ(batch.timings()[2].item, 3);
}

TEST(ImagePairsPhotoTest, PhotographsComeTheSameWithAnyCacheAndWorkers) {
  const char* photos = std::getenv("UNIDLE_PHOTOS");
  if (photos == nullptr) {
    GTEST_SKIP() << "UNIDLE_PHOTOS names no folder of photographs";
  }
  const TemporaryFolder folder;
  ImageDecoder decoder;
  for (const char* name : {"astronaut.png", "coffee.png", "rocket.jpg"}) {
    const std::string path = std::filesystem::path(photos) / name;
    Picture picture = decoder.decode(decoder.read(path), path);
    picture.pixels.resize(static_cast<std::size_t>(picture.width) * 256 * 3);
    picture.height = 256;
    Picture cut{picture.width / 4 * 4, 256, {}};
    for (int row = 0; row < 256; ++row) {
      const auto from = picture.pixels.begin() + static_cast<std::ptrdiff_t>(row) * picture.width * 3;
      cut.pixels.insert(cut.pixels.end(), from, from + cut.width * 3);
    }
    write_pair(folder.path(), std::filesystem::path(name).stem().string() + ".png", cut);
  }
  const auto deliver = [&](std::size_t cache_bytes, int workers) {
    const ImagePairSource source(folder.path(), {.crop = 128, .crops_per_item = 2, .cache_bytes = cache_bytes});
    Loader loader(source, {.batch = 4, .workers = workers});
    std::vector<std::byte> all;
    for (int i = 0; i < 6; ++i) {
      const Batch batch = loader.next();
      all.insert(all.end(), batch.field(0), batch.field(0) + 4 * 32 * 32 * 3);
      all.insert(all.end(), batch.field(1), batch.field(1) + 4 * 128 * 128 * 3);
    }
    return all;
  };
  const std::vector<std::byte> expected = deliver(0, 0);
  EXPECT_TRUE(deliver(0, 2) == expected);
  EXPECT_TRUE(deliver(std::size_t{1} << 30, 2) == expected);
}

}  // namespace
}  // namespace unidle::data
