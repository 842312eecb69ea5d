#include "unidle/data/sources/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/detail/resample.h"
#include "unidle/data/detail/scratch_pool.h"
#include "unidle/data/source_kind.h"

namespace unidle::data {

namespace fs = std::filesystem;

struct ImageSource::Scratch {
  ImageDecoder decoder;
  detail::Resampler resampler;
  detail::Taps across;
  detail::Taps down;
};
struct ImageSource::Pool : detail::ScratchPool<Scratch> {};

/// What a sample shows: pixels [x, x + size) of `width` that the columns [left, right) would be resized to, and so
/// down.
struct ImageSource::Part {
  Region crop;  // of the picture; nothing beyond it is looked at
  int width;    // that it is resized to
  int height;
  int x;  // of the sample in that
  int y;
  bool mirrored;
};

namespace {

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

/// Throws for pictures that others read and we do not: leaving them out would be another data set.
bool is_readable_picture(const fs::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") {
    return true;
  }
  for (const char* other : {".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}) {
    if (extension == other) {
      throw Error(ErrorCode::kInput, path.string(), "is of a kind that is not read; expected .jpg, .jpeg or .png",
                  "convert it, or move it out of the folder");
    }
  }
  return false;
}

constexpr const char* kExpected = "expected a folder for each class, FOLDER/CLASS/NAME.jpg";

template <typename Iterator>
std::vector<fs::path> listed(const fs::path& folder, fs::directory_options options, bool folders) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (Iterator entry(folder, options, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (folders ? entry->is_directory(ignored) : !entry->is_directory(ignored) && is_readable_picture(entry->path())) {
      paths.push_back(entry->path());
    }
  }
  if (error) {
    throw Error(ErrorCode::kInput, folder.string(), fmt::format("cannot be listed: {}", error.message()), kExpected);
  }
  return paths;
}

}  // namespace

ImageSource::ImageSource(const std::string& path, const ImageOptions& options)
    : options_(options), pool_(std::make_unique<Pool>()) {
  check_options();
  options_.resize = options_.resize == 0 ? options_.size * 256 / 224 : options_.resize;
  fields_ = {{"image", options_.normalize ? DType::kF32 : DType::kU8, {3, options_.size, options_.size}},
             {"label", DType::kI64, {}}};
  if (options_.tell_crop) {
    fields_.push_back({"crop", DType::kI64, {5}});
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (int value = 0; value < 256; ++value) {
      values_[channel][static_cast<std::size_t>(value)] =
          (static_cast<float>(value) * (1.0f / 255.0f) - options_.mean[channel]) / options_.std[channel];
    }
  }
  const fs::file_status status = status_of(path);
  if (fs::is_directory(status)) {
    list_folder(path);
  } else if (fs::exists(status)) {
    list_lines(path);
  } else {
    throw Error(ErrorCode::kInput, path, "is not there", kExpected);
  }
}

ImageSource::~ImageSource() = default;

void ImageSource::check_options() const {
  const auto fail = [](std::string_view name, std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("images option {}", name), std::move(message));
  };
  if (options_.size < 1 || options_.size > 16384) {
    fail("size", fmt::format("expected 1 to 16384, found {}", options_.size));
  }
  if (options_.resize != 0 && (options_.resize < options_.size || options_.resize > 16384)) {
    fail("resize", fmt::format("expected {} to 16384, found {}", options_.size, options_.resize));
  }
  if (!(options_.scale.least > 0) || !(options_.scale.least <= options_.scale.most) || !(options_.scale.most <= 1)) {
    fail("scale", fmt::format("expected two shares of 1, the first not larger, found {} and {}", options_.scale.least,
                              options_.scale.most));
  }
  if (!(options_.ratio.least >= 0.01) || !(options_.ratio.least <= options_.ratio.most) ||
      !(options_.ratio.most <= 100)) {
    fail("ratio", fmt::format("expected two ratios from 0.01 to 100, the first not larger, found {} and {}",
                              options_.ratio.least, options_.ratio.most));
  }
  if (!(options_.flip >= 0 && options_.flip <= 1)) {
    fail("flip", fmt::format("expected 0 to 1, found {}", options_.flip));
  }
  if (std::any_of(options_.std.begin(), options_.std.end(), [](float value) { return !(value > 0); })) {
    fail("std", "expected three numbers above 0");
  }
}

void ImageSource::list_folder(const std::string& folder) {
  std::vector<fs::path> classes = listed<fs::directory_iterator>(folder, fs::directory_options::none, true);
  std::sort(classes.begin(), classes.end());
  if (classes.empty()) {
    throw Error(ErrorCode::kInput, folder, "has no folders in it", kExpected);
  }
  for (const fs::path& one : classes) {
    auto files = listed<fs::recursive_directory_iterator>(one, fs::directory_options::follow_directory_symlink, false);
    if (files.empty()) {
      throw Error(ErrorCode::kInput, one.string(), "holds no .jpg, .jpeg or .png; expected pictures of that class");
    }
    std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
      return std::pair(a.parent_path().native(), a.native()) < std::pair(b.parent_path().native(), b.native());
    });
    for (const fs::path& file : files) {
      files_.push_back({file.string(), static_cast<std::int64_t>(classes_.size())});
    }
    classes_.push_back(one.filename().string());
  }
}

void ImageSource::list_lines(const std::string& list) {
  const std::string text = read_file(list);
  const fs::path folder = fs::path(list).parent_path();
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    ++number;
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    const std::size_t gap = line.find_last_of(" \t");
    std::int64_t label = -1;
    const char* last = line.data() + line.size();
    if (gap == std::string_view::npos || gap == 0 || std::from_chars(line.data() + gap + 1, last, label).ptr != last ||
        label < 0) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", list, number),
                  "expected a path, a space and the number of a class from 0");
    }
    const std::string_view path = line.substr(0, line.find_last_not_of(" \t", gap) + 1);
    files_.push_back({(folder / path).string(), label});
  }
  if (files_.empty()) {
    throw Error(ErrorCode::kInput, list, "has no lines; expected a path and the number of a class in each");
  }
}

ImageSource::Part ImageSource::choose(const ItemRequest& request, int width, int height) const {
  if (!options_.train) {
    const detail::MiddlePart part = detail::resized_middle(width, height, options_.resize, options_.size);
    return {{0, 0, width, height}, part.width, part.height, part.left, part.top, false};
  }
  CounterRandom random{request.seed, static_cast<std::uint64_t>(request.epoch),
                       static_cast<std::uint64_t>(request.item)};
  const bool mirrored = random.unit() < options_.flip;
  const Region crop = detail::random_resized_crop(random, width, height, options_.scale, options_.ratio);
  return {crop, options_.size, options_.size, 0, 0, mirrored};
}

void ImageSource::write(const std::uint8_t* pixels, bool mirrored, std::span<std::byte> to) const {
  const auto side = static_cast<std::ptrdiff_t>(options_.size);
  const std::ptrdiff_t step = mirrored ? -3 : 3;
  const auto planes = [&](auto* out, const auto& value_of) {
    for (std::ptrdiff_t row = 0; row < side; ++row) {
      const std::uint8_t* from = pixels + row * side * 3 + (mirrored ? (side - 1) * 3 : 0);
      auto* red = out + row * side;
      auto* green = red + side * side;
      auto* blue = green + side * side;
      for (std::ptrdiff_t x = 0; x < side; ++x, from += step) {
        red[x] = value_of(0, from[0]);
        green[x] = value_of(1, from[1]);
        blue[x] = value_of(2, from[2]);
      }
    }
  };
  if (options_.normalize) {
    planes(reinterpret_cast<float*>(to.data()),
           [this](std::size_t channel, std::uint8_t value) { return values_[channel][value]; });
  } else {
    planes(reinterpret_cast<std::uint8_t*>(to.data()), [](std::size_t, std::uint8_t value) { return value; });
  }
}

std::uint64_t ImageSource::read(const ItemRequest& request, std::span<const Places> samples) const {
  const File& file = files_[static_cast<std::size_t>(request.item)];
  Pool::Lease scratch(*pool_);
  const std::span<const std::byte> bytes = scratch->decoder.read(file.path);
  const ImageInfo info = scratch->decoder.probe(bytes, file.path);
  const Part part = choose(request, info.width, info.height);
  const Region& crop = part.crop;
  int shrink = 1;
  while (options_.scaled_decode && info.format == ImageFormat::kJpeg && shrink < 8 &&
         crop.width >= part.width * shrink * 2 && crop.height >= part.height * shrink * 2) {
    shrink *= 2;
  }
  // Of the whole resized part, the sample may show the middle: decoded is what that is made of.
  detail::Taps& across = scratch->across;
  detail::Taps& down = scratch->down;
  across.prepare(crop.width, 0, crop.width, part.width, part.x, options_.size);
  down.prepare(crop.height, 0, crop.height, part.height, part.y, options_.size);
  const Region needed{crop.x + across.begin(), crop.y + down.begin(), across.end() - across.begin(),
                      down.end() - down.begin()};
  const ImageDecoder::View view = scratch->decoder.decode_region(bytes, file.path, needed, shrink);
  int left = view.region.x - crop.x;
  int top = view.region.y - crop.y;
  if (view.shrink > 1) {
    const double by = view.shrink;
    left = view.region.x;
    top = view.region.y;
    across.prepare(left + view.region.width, crop.x / by, (crop.x + crop.width) / by, part.width, part.x,
                   options_.size);
    down.prepare(top + view.region.height, crop.y / by, (crop.y + crop.height) / by, part.height, part.y,
                 options_.size);
  }
  const std::uint8_t* pixels = scratch->resampler.run(view.pixels, view.stride, left, top, across, down);
  write(pixels, part.mirrored, samples[0][0]);
  std::memcpy(samples[0][1].data(), &file.label, sizeof file.label);
  if (options_.tell_crop) {
    const std::int64_t told[5] = {crop.y, crop.x, crop.height, crop.width, part.mirrored ? 1 : 0};
    std::memcpy(samples[0][2].data(), told, sizeof told);
  }
  return bytes.size();
}

std::string ImageSource::describe() const {
  return nlohmann::json{{"classes", classes_}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace sources {

namespace {

detail::Bounds bounds(SourceOptions& options, std::string_view name, detail::Bounds otherwise) {
  const std::vector<double> values = options.reals(name, {otherwise.least, otherwise.most});
  if (values.size() != 2) {
    throw Error(ErrorCode::kUsage, fmt::format("images option {}", name), "expected two numbers");
  }
  return {values[0], values[1]};
}

std::array<float, 3> channels(SourceOptions& options, std::string_view name, const std::array<float, 3>& otherwise) {
  const std::vector<double> values = options.reals(name, {otherwise[0], otherwise[1], otherwise[2]});
  if (values.size() != 3) {
    throw Error(ErrorCode::kUsage, fmt::format("images option {}", name), "expected three numbers");
  }
  return {static_cast<float>(values[0]), static_cast<float>(values[1]), static_cast<float>(values[2])};
}

std::unique_ptr<Source> open_images(SourceOptions& options, std::span<const ArrayView>) {
  ImageOptions wanted;
  const std::string path = options.text("path");
  wanted.size = options.small("size", wanted.size);
  wanted.train = options.flag("train", wanted.train);
  wanted.scale = bounds(options, "scale", wanted.scale);
  wanted.ratio = bounds(options, "ratio", wanted.ratio);
  wanted.flip = options.real("flip", wanted.flip);
  wanted.resize = options.small("resize", wanted.resize);
  wanted.normalize = options.flag("normalize", wanted.normalize);
  wanted.mean = channels(options, "mean", wanted.mean);
  wanted.std = channels(options, "std", wanted.std);
  wanted.scaled_decode = options.flag("scaled_decode", wanted.scaled_decode);
  wanted.tell_crop = options.flag("tell_crop", wanted.tell_crop);
  options.done();
  return std::make_unique<ImageSource>(path, wanted);
}

}  // namespace

const SourceKind& images() {
  static const SourceKind kKind = {"images", open_images};
  return kKind;
}

}  // namespace sources

}  // namespace unidle::data
