#include "unidle/data/sources/image_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/data/random.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

namespace fs = std::filesystem;

/// A region of the low picture, and whether it is mirrored.
struct ImagePairSource::Crop {
  int x;
  int y;
  bool mirrored;
};

namespace {

constexpr const char* kFolders[] = {"low", "high"};

bool is_picture(const fs::path& path) {
  const std::string extension = lower(path.extension().string());
  return path.filename().string().front() != '.' &&
         (extension == ".png" || extension == ".jpg" || extension == ".jpeg");
}

std::vector<std::string> list_pictures(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_picture(entry->path())) {
      names.push_back(entry->path().filename().string());
    }
  }
  if (error) {
    throw Error(ErrorCode::kInput, folder.string(), fmt::format("cannot be listed: {}", error.message()),
                "expected a folder with high/NAME.png and low/NAME.png");
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The names in both folders. Throws for the first name that is in only one.
std::vector<std::string> matched_names(const fs::path& folder) {
  const std::vector<std::string> high = list_pictures(folder / "high");
  const std::vector<std::string> low = list_pictures(folder / "low");
  const auto [in_high, in_low] = std::mismatch(high.begin(), high.end(), low.begin(), low.end());
  if (in_high != high.end() && (in_low == low.end() || *in_high < *in_low)) {
    throw Error(ErrorCode::kInput, (folder / "high" / *in_high).string(),
                fmt::format("has no partner; expected {}", (folder / "low" / *in_high).string()));
  }
  if (in_low != low.end()) {
    throw Error(ErrorCode::kInput, (folder / "low" / *in_low).string(),
                fmt::format("has no partner; expected {}", (folder / "high" / *in_low).string()));
  }
  if (high.empty()) {
    throw Error(ErrorCode::kInput, (folder / "high").string(),
                "holds no .png, .jpg or .jpeg; expected at least one picture");
  }
  return high;
}

void check_options(const ImagePairOptions& options) {
  const auto fail = [](std::string_view name, std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("pairs option {}", name), std::move(message));
  };
  if (options.scale < 1 || options.scale > 64) {
    fail("scale", fmt::format("expected 1 to 64, found {}", options.scale));
  }
  if (options.crop < 1 || options.crop > 65536 || options.crop % options.scale != 0) {
    fail("crop",
         fmt::format("expected a multiple of the scale {}, at most 65536, found {}", options.scale, options.crop));
  }
  if (options.crops_per_item < 1 || options.crops_per_item > 4096) {
    fail("crops_per_item", fmt::format("expected 1 to 4096, found {}", options.crops_per_item));
  }
}

void mirror_row(const std::uint8_t* from, std::uint8_t* to, int width) {
  // Copies pixels as four bytes, of which the next pixel overwrites the fourth; the first and the last one as three.
  const std::uint8_t* pixel = from + static_cast<std::ptrdiff_t>(width - 1) * 3;
  std::memcpy(to, pixel, 3);  // the byte after the source row may not be ours
  for (int x = 1; x + 1 < width; ++x) {
    pixel -= 3;
    to += 3;
    std::memcpy(to, pixel, 4);
  }
  if (width > 1) {
    std::memcpy(to + 3, from, 3);
  }
}

void copy_part(const std::uint8_t* from, std::size_t stride, int side, bool mirrored, std::uint8_t* to) {
  const std::size_t row_bytes = static_cast<std::size_t>(side) * 3;
  for (int row = 0; row < side; ++row, from += stride, to += row_bytes) {
    if (mirrored) {
      mirror_row(from, to, side);
    } else {
      std::memcpy(to, from, row_bytes);
    }
  }
}

}  // namespace

ImagePairSource::ImagePairSource(const std::string& folder, const ImagePairOptions& options)
    : folder_(folder), options_(options), decoders_(std::make_unique<Decoders>()) {
  check_options(options_);
  if (std::error_code error; !fs::is_directory(folder_, error)) {
    throw Error(ErrorCode::kInput, folder_, "is not a folder", "expected a folder with high/NAME.png and low/NAME.png");
  }
  const std::int64_t low = options_.crop / options_.scale;
  fields_ = {{"low", DType::kU8, {low, low, 3}}, {"high", DType::kU8, {options_.crop, options_.crop, 3}}};
  for (std::string& name : matched_names(folder_)) {
    pairs_.push_back(probe(std::move(name)));
  }
  cache_ = std::make_unique<PictureCache>(pairs_.size() * 2, options_.cache_bytes);
}

ImagePairSource::~ImagePairSource() = default;

std::size_t ImagePairSource::decoded_bytes() const {
  std::size_t bytes = 0;
  for (const Files& pair : pairs_) {
    bytes += pair.info[kLow].rgb_bytes() + pair.info[kHigh].rgb_bytes();
  }
  return bytes;
}

std::string ImagePairSource::path(const std::string& name, FieldIndex which) const {
  return (fs::path(folder_) / kFolders[which] / name).string();
}

ImagePairSource::Files ImagePairSource::probe(std::string name) const {
  Files files{std::move(name), {}};
  ImageInfo& high = files.info[kHigh];
  ImageInfo& low = files.info[kLow];
  high = probe_image_file(path(files.name, kHigh));
  low = probe_image_file(path(files.name, kLow));
  if (high.width < options_.crop || high.height < options_.crop) {
    throw Error(ErrorCode::kInput, path(files.name, kHigh),
                fmt::format("is {} x {} pixels; expected at least the crop, {} x {}", high.width, high.height,
                            options_.crop, options_.crop),
                "remove the picture or make the crop smaller");
  }
  if (std::int64_t{low.width} * options_.scale != high.width ||
      std::int64_t{low.height} * options_.scale != high.height) {
    throw Error(ErrorCode::kInput, path(files.name, kLow),
                fmt::format("is {} x {} pixels; expected 1/{} of {} x {}, which {} has", low.width, low.height,
                            options_.scale, high.width, high.height, path(files.name, kHigh)));
  }
  return files;
}

ImagePairSource::Crop ImagePairSource::choose(const ItemRequest& request, std::size_t crop) const {
  const ImageInfo& low = pairs_[static_cast<std::size_t>(request.item)].info[kLow];
  const int side = options_.crop / options_.scale;
  CounterRandom random{request.seed, static_cast<std::uint64_t>(request.epoch),
                       static_cast<std::uint64_t>(request.item), crop};
  const auto x = static_cast<int>(random.below(static_cast<std::uint32_t>(low.width - side + 1)));
  const auto y = static_cast<int>(random.below(static_cast<std::uint32_t>(low.height - side + 1)));
  return {x, y, random.below(2) == 1 && options_.flip};
}

void ImagePairSource::check_unchanged(const std::string& path, const ImageInfo& now, const ImageInfo& before) const {
  if (now.width != before.width || now.height != before.height) {
    throw Error(ErrorCode::kInput, path,
                fmt::format("has changed to {} x {} pixels; expected {} x {}, as when the data set was opened",
                            now.width, now.height, before.width, before.height));
  }
}

Picture ImagePairSource::decode_whole(std::int64_t item, FieldIndex which, std::uint64_t& read_bytes) const {
  const Files& files = pairs_.at(static_cast<std::size_t>(item));
  const std::string file = path(files.name, which);
  Decoders::Lease decoder(*decoders_);
  const std::span<const std::byte> bytes = decoder->read(file);
  read_bytes += bytes.size();
  Picture picture = decoder->decode(bytes, file);
  check_unchanged(file, {files.info[which].format, picture.width, picture.height}, files.info[which]);
  return picture;
}

const Picture* ImagePairSource::cached(std::int64_t item, FieldIndex which, std::uint64_t& read_bytes) const {
  const auto decode = [&] { return decode_whole(item, which, read_bytes); };
  const auto index = static_cast<std::size_t>(item);
  // By reference, so that std::function does not allocate.
  return cache_->get(index * 2 + which, pairs_.at(index).info[which].rgb_bytes(), std::cref(decode));
}

std::uint64_t ImagePairSource::fill(const ItemRequest& request, FieldIndex which,
                                    std::span<const Places> samples) const {
  const int factor = which == kHigh ? options_.scale : 1;
  const int side = options_.crop / options_.scale * factor;
  std::uint64_t read_bytes = 0;
  const auto copy = [&](const std::uint8_t* pixels, std::size_t stride, int left, int top) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Crop crop = choose(request, i);
      const std::uint8_t* corner = pixels + static_cast<std::size_t>(crop.y * factor - top) * stride +
                                   static_cast<std::size_t>(crop.x * factor - left) * 3;
      copy_part(corner, stride, side, crop.mirrored, reinterpret_cast<std::uint8_t*>(samples[i][which].data()));
    }
  };
  if (const Picture* picture = cached(request.item, which, read_bytes)) {
    copy(picture->pixels.data(), static_cast<std::size_t>(picture->width) * 3, 0, 0);
    return read_bytes;
  }
  Crop low = choose(request, 0);
  Crop high = low;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const Crop crop = choose(request, i);
    low = {std::min(low.x, crop.x), std::min(low.y, crop.y), false};
    high = {std::max(high.x, crop.x), std::max(high.y, crop.y), false};
  }
  const Region region{low.x * factor, low.y * factor, (high.x - low.x) * factor + side,
                      (high.y - low.y) * factor + side};
  const Files& files = pairs_[static_cast<std::size_t>(request.item)];
  const std::string file = path(files.name, which);
  Decoders::Lease decoder(*decoders_);
  const std::span<const std::byte> bytes = decoder->read(file);
  const ImageDecoder::View view = decoder->decode_region(bytes, file, region);
  check_unchanged(file, view.info, files.info[which]);
  copy(view.pixels, view.stride, region.x, region.y);
  return bytes.size();
}

std::uint64_t ImagePairSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  const std::uint64_t low_bytes = fill(request, kLow, samples);
  return low_bytes + fill(request, kHigh, samples);
}

ImagePairSource::Pair ImagePairSource::read_pair(std::int64_t item) const {
  const auto whole = [&](FieldIndex which) {
    std::uint64_t read_bytes = 0;
    if (const Picture* picture = cached(item, which, read_bytes)) {
      return std::shared_ptr<const Picture>(std::shared_ptr<const Picture>(), picture);  // owned by the cache
    }
    return std::make_shared<const Picture>(decode_whole(item, which, read_bytes));
  };
  return {whole(kLow), whole(kHigh)};
}

namespace sources {

namespace {

std::unique_ptr<Source> open_pairs(SourceOptions& options, std::span<const ArrayView>) {
  ImagePairOptions wanted;
  const std::string path = options.text("path");
  wanted.crop = options.small("crop", wanted.crop);
  wanted.scale = options.small("scale", wanted.scale);
  wanted.crops_per_item = options.small("crops_per_item", wanted.crops_per_item);
  wanted.flip = options.flag("flip", wanted.flip);
  wanted.cache_bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, options.integer("cache_bytes", 0)));
  options.done();
  return std::make_unique<ImagePairSource>(path, wanted);
}

}  // namespace

const SourceKind& image_pairs() {
  static const SourceKind kKind = {"pairs", open_pairs};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
