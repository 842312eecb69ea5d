#include "unidle/data/detail/picture_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/data/detail/orientation.h"
#include "unidle/data/detail/resample.h"
#include "unidle/data/detail/scratch_pool.h"
#include "unidle/data/detail/stages.h"

namespace unidle::data {

namespace {

detail::Bounds bounds(SourceOptions& options, std::string_view kind, std::string_view name, detail::Bounds otherwise) {
  const std::vector<double> values = options.reals(name, {otherwise.least, otherwise.most});
  if (values.size() != 2) {
    throw Error(ErrorCode::kUsage, fmt::format("{} option {}", kind, name), "expected two numbers");
  }
  return {values[0], values[1]};
}

std::array<float, 3> channels(SourceOptions& options, std::string_view kind, std::string_view name,
                              const std::array<float, 3>& otherwise) {
  const std::vector<double> values = options.reals(name, {otherwise[0], otherwise[1], otherwise[2]});
  if (values.size() != 3) {
    throw Error(ErrorCode::kUsage, fmt::format("{} option {}", kind, name), "expected three numbers");
  }
  return {static_cast<float>(values[0]), static_cast<float>(values[1]), static_cast<float>(values[2])};
}

}  // namespace

ImageOptions image_options(SourceOptions& options, std::string_view kind) {
  ImageOptions wanted;
  wanted.size = options.small("size", wanted.size);
  wanted.train = options.flag("train", wanted.train);
  wanted.scale = bounds(options, kind, "scale", wanted.scale);
  wanted.ratio = bounds(options, kind, "ratio", wanted.ratio);
  wanted.flip = options.real("flip", wanted.flip);
  wanted.resize = options.small("resize", wanted.resize);
  wanted.normalize = options.flag("normalize", wanted.normalize);
  wanted.mean = channels(options, kind, "mean", wanted.mean);
  wanted.std = channels(options, kind, "std", wanted.std);
  wanted.scaled_decode = options.flag("scaled_decode", wanted.scaled_decode);
  wanted.orient = options.flag("orient", wanted.orient);
  wanted.colors.brightness = bounds(options, kind, "brightness", wanted.colors.brightness);
  wanted.colors.contrast = bounds(options, kind, "contrast", wanted.colors.contrast);
  wanted.colors.saturation = bounds(options, kind, "saturation", wanted.colors.saturation);
  wanted.colors.hue = bounds(options, kind, "hue", wanted.colors.hue);
  wanted.tell_crop = options.flag("tell_crop", wanted.tell_crop);
  return wanted;
}

namespace detail {

struct PictureSamples::Scratch {
  ImageDecoder decoder;
  Resampler resampler;
  ColorChanger colors;
  std::vector<std::uint8_t> upright;
  Taps across;
  Taps down;
};
struct PictureSamples::Pool : ScratchPool<Scratch> {};

/// What a sample shows: pixels [x, x + size) of the `width` pixels that columns [left, right) are resized to, and the
/// same for rows.
struct PictureSamples::Part {
  Region crop;  // of the picture; nothing outside it is used
  int width;    // width after resizing
  int height;
  int x;  // of the sample within the resized part
  int y;
  bool mirrored;
  ColorChange colors;
};

PictureSamples::PictureSamples(const ImageOptions& options, std::string_view kind)
    : options_(options), pool_(std::make_unique<Pool>()) {
  check(kind);
  options_.resize = options_.resize == 0 ? options_.size * 256 / 224 : options_.resize;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (int value = 0; value < 256; ++value) {
      values_[channel][static_cast<std::size_t>(value)] =
          (static_cast<float>(value) * (1.0f / 255.0f) - options_.mean[channel]) / options_.std[channel];
    }
  }
}

PictureSamples::~PictureSamples() = default;

Field PictureSamples::field() const {
  return {"image", options_.normalize ? DType::kF32 : DType::kU8, {3, options_.size, options_.size}};
}

void PictureSamples::check(std::string_view kind) const {
  const auto fail = [kind](std::string_view name, std::string message) {
    throw Error(ErrorCode::kUsage, fmt::format("{} option {}", kind, name), std::move(message));
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
  const ColorJitter& colors = options_.colors;
  for (const auto& [name, bounds] :
       {std::pair("brightness", colors.brightness), {"contrast", colors.contrast}, {"saturation", colors.saturation}}) {
    if (!(bounds.least >= 0 && bounds.least <= bounds.most && bounds.most <= 1e4)) {
      fail(name, fmt::format("expected two factors from 0, the first not larger, found {} and {}", bounds.least,
                             bounds.most));
    }
  }
  if (!(colors.hue.least >= -0.5 && colors.hue.least <= colors.hue.most && colors.hue.most <= 0.5)) {
    fail("hue", fmt::format("expected two turns from -0.5 to 0.5, the first not larger, found {} and {}",
                            colors.hue.least, colors.hue.most));
  }
  if (!options_.train && colors.changes()) {
    fail("train", "expected true with brightness, contrast, saturation or hue: the others show pictures as they are");
  }
  if (std::any_of(options_.std.begin(), options_.std.end(), [](float value) { return !(value > 0); })) {
    fail("std", "expected three numbers above 0");
  }
}

PictureSamples::Part PictureSamples::choose(const ItemRequest& request, int width, int height) const {
  if (!options_.train) {
    const MiddlePart part = resized_middle(width, height, options_.resize, options_.size);
    return {{0, 0, width, height}, part.width, part.height, part.left, part.top, false, {}};
  }
  CounterRandom random{request.seed, static_cast<std::uint64_t>(request.epoch),
                       static_cast<std::uint64_t>(request.item)};
  const bool mirrored = random.unit() < options_.flip;
  const Region crop = random_resized_crop(random, width, height, options_.scale, options_.ratio);
  return {crop, options_.size, options_.size, 0, 0, mirrored, draw_colors(random, options_.colors)};
}

void PictureSamples::write(const std::uint8_t* pixels, bool mirrored, std::span<std::byte> to) const {
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

PictureSamples::Drawn PictureSamples::make(const std::string& path, const ItemRequest& request,
                                           std::span<std::byte> to) const {
  Pool::Lease scratch(*pool_);
  return make(*scratch, scratch->decoder.read(path), path, request, to);
}

PictureSamples::Drawn PictureSamples::make(std::span<const std::byte> bytes, std::string_view subject,
                                           const ItemRequest& request, std::span<std::byte> to) const {
  Pool::Lease scratch(*pool_);
  return make(*scratch, bytes, subject, request, to);
}

PictureSamples::Drawn PictureSamples::make(Scratch& scratch, std::span<const std::byte> bytes, std::string_view subject,
                                           const ItemRequest& request, std::span<std::byte> to) const {
  const InStage stage(Stage::kAugment);
  const ImageInfo info = scratch.decoder.probe(bytes, subject);
  const Orientation turned = options_.orient ? orientation_of(bytes) : Orientation();
  const int width = turned.transposed ? info.height : info.width;
  const int height = turned.transposed ? info.width : info.height;
  const Part part = choose(request, width, height);
  const Region& crop = part.crop;
  int shrink = 1;
  while (options_.scaled_decode && info.format == ImageFormat::kJpeg && shrink < 8 &&
         crop.width >= part.width * shrink * 2 && crop.height >= part.height * shrink * 2) {
    shrink *= 2;
  }
  // The sample may show only the middle of the resized part: decode only what that depends on.
  Taps& across = scratch.across;
  Taps& down = scratch.down;
  across.prepare(crop.width, 0, crop.width, part.width, part.x, options_.size);
  down.prepare(crop.height, 0, crop.height, part.height, part.y, options_.size);
  const Region needed{crop.x + across.begin(), crop.y + down.begin(), across.end() - across.begin(),
                      down.end() - down.begin()};
  ImageDecoder::View view =
      scratch.decoder.decode_region(bytes, subject, stored_region(turned, needed, width, height), shrink);
  const auto shrunk = [&view](int side) { return (side + view.shrink - 1) / view.shrink; };
  if (!turned.is_stored()) {
    turn(turned, view.pixels, view.stride, view.region.width, view.region.height, scratch.upright);
    view.region = shown_region(turned, view.region, shrunk(width), shrunk(height));
    view.pixels = scratch.upright.data();
    view.stride = static_cast<std::size_t>(view.region.width) * 3;
  }
  int left = view.region.x - crop.x;
  int top = view.region.y - crop.y;
  if (view.shrink > 1) {
    const double by = view.shrink;
    left = view.region.x;
    top = view.region.y;
    // The last stored pixel may cover less of the picture than the others; mirrored, it is the first one.
    const double x = crop.x / by + (turned.across ? shrunk(width) - width / by : 0);
    const double y = crop.y / by + (turned.down ? shrunk(height) - height / by : 0);
    across.prepare(left + view.region.width, x, x + crop.width / by, part.width, part.x, options_.size);
    down.prepare(top + view.region.height, y, y + crop.height / by, part.height, part.y, options_.size);
  }
  const std::uint8_t* pixels = scratch.resampler.run(view.pixels, view.stride, left, top, across, down);
  if (options_.colors.changes()) {
    const auto side = static_cast<std::size_t>(options_.size);
    pixels = scratch.colors.run(pixels, side * side, part.colors);
  }
  write(pixels, part.mirrored, to);
  return {crop, part.mirrored, part.colors, bytes.size()};
}

}  // namespace detail

}  // namespace unidle::data
