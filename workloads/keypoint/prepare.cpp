// Generates the pictures of the workload.
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <numbers>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "workloads/common/npy_file.h"
#include "workloads/common/whole_folder.h"
#include "workloads/keypoint/keypoint.h"
#include "workloads/keypoint/model.h"

namespace unidle::workloads::keypoint {

namespace {

constexpr std::int64_t kShard = 64;
constexpr std::int64_t kSamples = 256;
constexpr double kHidden = 0.1;
constexpr int kSpots = 4;  // distractors

/// Generates pictures one by one. One thread.
class Painter {
 public:
  Painter(std::int64_t height, std::uint64_t seed)
      : height_(height),
        width_(2 * height),
        radius_(static_cast<double>(height) / 24),
        random_(at::make_generator<at::CPUGeneratorImpl>(seed)),
        y_(at::arange(height_, at::kFloat).unsqueeze(1)),
        x_(at::arange(width_, at::kFloat).unsqueeze(0)) {}

  struct Picture {
    at::Tensor image;    // uint8 [height, width, 4]
    at::Tensor points;   // [2, 2]
    at::Tensor visible;  // [2]
  };

  Picture paint() {
    at::Tensor image = background();
    for (int spot = 0; spot < kSpots; ++spot) {
      add(image, static_cast<int>(uniform() * kChannels), disk(place(), 0.6 * radius_), 60);
    }
    const at::Tensor points = at::stack({place(), place()});
    const at::Tensor visible = (at::rand({kPoints}, random_) >= kHidden).to(at::kFloat);
    if (visible[0].item<bool>()) {
      add(image, 0, disk(points[0], radius_), 110);
      add(image, 3, disk(points[0], radius_), -80);
    }
    if (visible[1].item<bool>()) {
      add(image, 1, ring(points[1]), 110);
      add(image, 2, disk(points[1], 1.5 * radius_), -80);
    }
    const at::Tensor noisy = image + 12 * at::randn(image.sizes(), random_, image.options());
    return {noisy.clamp(0, 255).to(at::kByte).permute({1, 2, 0}).contiguous(), points, visible};
  }

 private:
  double uniform() { return at::rand({}, random_).item<double>(); }
  /// A place far enough from the border for a whole mark.
  at::Tensor place() {
    const double margin = 1.5 * radius_;
    return at::tensor({static_cast<float>(margin + uniform() * (static_cast<double>(width_) - 2 * margin)),
                       static_cast<float>(margin + uniform() * (static_cast<double>(height_) - 2 * margin))});
  }
  at::Tensor background() {
    std::vector<at::Tensor> channels;
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      const double turns = 2 * std::numbers::pi / static_cast<double>(height_);
      const at::Tensor along = x_ * (turns * (0.5 + 2 * uniform())) + y_ * (turns * (0.5 + 2 * uniform()));
      channels.push_back(120 + 40 * (along + 6 * uniform()).sin());
    }
    return at::stack(channels);
  }
  at::Tensor distance(const at::Tensor& place) const {
    return ((x_ - place[0]).square() + (y_ - place[1]).square()).sqrt();
  }
  at::Tensor disk(const at::Tensor& place, double radius) const { return (-(distance(place) / radius).square()).exp(); }
  at::Tensor ring(const at::Tensor& place) const {
    return (-((distance(place) - radius_) / (0.4 * radius_)).square()).exp();
  }
  static void add(at::Tensor& image, int channel, const at::Tensor& mark, double strength) {
    image[channel] += strength * mark;
  }

  std::int64_t height_;
  std::int64_t width_;
  double radius_;
  at::Generator random_;
  at::Tensor y_;
  at::Tensor x_;
};

void write_shards(const std::filesystem::path& folder, std::int64_t samples, Painter& painter) {
  make_folders(folder);
  for (std::int64_t shard = 0; shard * kShard < samples; ++shard) {
    std::vector<at::Tensor> images;
    std::vector<at::Tensor> points;
    std::vector<at::Tensor> visible;
    for (std::int64_t i = shard * kShard; i < std::min(samples, (shard + 1) * kShard); ++i) {
      const Painter::Picture picture = painter.paint();
      images.push_back(picture.image);
      points.push_back(picture.points);
      visible.push_back(picture.visible);
    }
    write_npy(folder / fmt::format("image_{}.npy", shard), at::stack(images));
    write_npy(folder / fmt::format("points_{}.npy", shard), at::stack(points));
    write_npy(folder / fmt::format("visible_{}.npy", shard), at::stack(visible));
  }
}

}  // namespace

std::string prepare_pictures(const std::filesystem::path& folder, const PictureRequest& request) {
  if (request.height % 32 != 0) {
    throw Error(ErrorCode::kInput, "input.size", fmt::format("expected a multiple of 32, found {}", request.height));
  }
  const std::int64_t training = request.samples > 0 ? request.samples : kSamples;
  const std::int64_t validation = (training + 3) / 4;
  Painter painter(request.height, request.seed);
  make_whole_folder(folder, [&](const std::filesystem::path& made) {
    write_shards(made / "train", training, painter);
    write_shards(made / "validation", validation, painter);
  });
  return fmt::format("{} training and {} validation pictures of {}x{} in {}, generated", training, validation,
                     request.height, 2 * request.height, folder.string());
}

}  // namespace unidle::workloads::keypoint
