#include "workloads/keypoint/keypoint.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "workloads/common/npy_file.h"
#include "workloads/keypoint/maps.h"
#include "workloads/keypoint/model.h"
#include "workloads/testing/small_run.h"

namespace unidle::workloads::keypoint {
namespace {

using ::testing::HasSubstr;

class Keypoint : public ::testing::Test {
 protected:
  std::filesystem::path data() const { return folder_.path() / "data"; }
  void generate(std::int64_t samples) const { prepare_pictures(data(), {.height = 64, .samples = samples, .seed = 3}); }
  std::vector<std::string> settings(std::vector<std::string> more) const {
    more.insert(more.begin(), {"data.folder=" + data().string(), "input.size=64", "model.width=8", "batch.size=4",
                               "optimizer.lr=0.002", "validation.interval=0"});
    return more;
  }

  TemporaryFolder folder_;
};

TEST_F(Keypoint, GeneratesShardsOf64WithMarksWhereThePointsAre) {
  EXPECT_THAT(prepare_pictures(data(), {.height = 64, .samples = 70, .seed = 3}), HasSubstr("generated"));
  const at::Tensor image = read_npy(data() / "train" / "image_0.npy");
  EXPECT_EQ(image.sizes(), (at::IntArrayRef{64, 64, 128, 4}));
  EXPECT_EQ(read_npy(data() / "train" / "image_1.npy").size(0), 6);
  EXPECT_EQ(read_npy(data() / "validation" / "image_0.npy").size(0), 18);
  const at::Tensor points = read_npy(data() / "train" / "points_0.npy");
  const at::Tensor visible = read_npy(data() / "train" / "visible_0.npy");
  const double seen = visible.mean().item<double>();
  EXPECT_GT(seen, 0.75);
  EXPECT_LT(seen, 1);
  // The first point is brighter in the first channel than in the last one.
  double difference = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    if (visible[i][0].item<bool>()) {
      const at::Tensor pixel = image[i][points[i][0][1].item<std::int64_t>()][points[i][0][0].item<std::int64_t>()];
      difference += pixel[0].item<double>() - pixel[3].item<double>();
    }
  }
  EXPECT_GT(difference / (64 * seen), 100);
}

TEST_F(Keypoint, Learns) {
  generate(16);
  const train::Summary summary = train_small("keypoint", settings({"train.samples=160", "ema.decay=0.8"}));
  EXPECT_LT(summary.loss_last.value(), 0.5 * summary.loss_first.value());
  EXPECT_GE(summary.metric.at("distance_px"), 0);
  EXPECT_LT(summary.metric.at("distance_px"), 128);
  EXPECT_EQ(summary.effective.at("model.width"), "8");
  EXPECT_EQ(summary.effective.at("input.size"), "64");
}

TEST_F(Keypoint, LayoutAndFusedUpdateChangeRoundingOnly) {
  generate(8);
  const train::Summary plain = train_small("keypoint", settings({"train.samples=16", "optimizer.lr=0.00001"}));
  const train::Summary other =
      train_small("keypoint", settings({"train.samples=16", "optimizer.lr=0.00001", "layout.channels_last=true",
                                        "optimizer.fused=true", "loader.workers=2"}));
  EXPECT_EQ(other.effective.at("layout.channels_last"), "true");
  EXPECT_NEAR(plain.loss_first.value(), other.loss_first.value(), 1e-5);
  EXPECT_NEAR(plain.loss_last.value(), other.loss_last.value(), 5e-3);
}

// As in a project that set a boolean where the name of a precision is expected.
TEST_F(Keypoint, AmpTrueStaysOff) {
  generate(8);
  const train::Summary ignored = train_small("keypoint", settings({"train.samples=8", "precision.amp=true"}));
  const train::Summary off = train_small("keypoint", settings({"train.samples=8"}));
  EXPECT_EQ(ignored.effective.at("precision.amp"), "off");
  EXPECT_EQ(ignored.loss_last, off.loss_last);
}

TEST_F(Keypoint, ResumesExactly) {
  generate(8);
  expect_resumes_exactly("keypoint", settings({"ema.decay=0.9"}), 16, folder_.path() / "checkpoints");
}

TEST_F(Keypoint, RefusesPicturesOfAnotherSize) {
  const auto message_of = [&] {
    try {
      train_small("keypoint", settings({"input.size=128"}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message_of(), HasSubstr("unidle-train keypoint.yaml --prepare"));
  generate(4);
  EXPECT_THAT(message_of(), HasSubstr("128x256x4"));
  EXPECT_THROW(prepare_pictures(data(), {.height = 40}), Error);
}

TEST(Maps, TellThePointsThatTheyWereMadeOf) {
  const at::Tensor points = at::tensor({10.3F, 5.9F, 50.0F, 30.2F}).view({1, 2, 2});
  const std::int64_t height = 16;
  const std::int64_t width = 32;
  Maps maps{heat_maps(points, height, width), at::zeros({1, kPoints, 2, height, width})};
  EXPECT_LT((predicted_points(maps) - points).abs().max().item<double>(), kStride / 2.0 + 1e-4);
  // With the exact offsets of all cells to the points, the error is zero.
  const at::Tensor cells = points / kStride - 0.5;
  const at::Tensor x = at::arange(width).view({1, 1, 1, width}).expand({1, kPoints, height, width});
  const at::Tensor y = at::arange(height).view({1, 1, height, 1}).expand({1, kPoints, height, width});
  maps.offsets = cells.view({1, kPoints, 2, 1, 1}) - at::stack({x, y}, 2);
  EXPECT_LT((predicted_points(maps) - points).abs().max().item<double>(), 1e-4);
  EXPECT_LT(map_loss(maps, points, at::ones({1, kPoints})).item<double>(), 1e-8);
}

TEST(Maps, LossLeavesOutWhatIsNotSeen) {
  const at::Tensor points = at::tensor({10.0F, 5.0F, 50.0F, 30.0F}).view({1, 2, 2});
  Maps maps{heat_maps(points, 16, 32), at::zeros({1, kPoints, 2, 16, 32})};
  maps.heat.select(1, 1).fill_(0.7);
  const at::Tensor seen = at::tensor({1.0F, 0.0F}).view({1, 2});
  EXPECT_LT(map_loss(maps, points, seen).item<double>(), map_loss(maps, points, at::ones({1, 2})).item<double>() / 2);
  EXPECT_EQ(map_loss(maps, points, at::zeros({1, 2})).item<double>(), 0);
}

TEST(KeypointModel, IsWhatItsPageAndTraitsSay) {
  Model model(32);
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, 3468614);
  model.eval();
  const at::NoGradGuard no_grad;
  const Maps maps = model.forward(at::zeros({1, kChannels, 256, 512}));
  EXPECT_EQ(maps.heat.sizes(), (at::IntArrayRef{1, 2, 64, 128}));
  EXPECT_EQ(maps.offsets.sizes(), (at::IntArrayRef{1, 2, 2, 64, 128}));
  EXPECT_TRUE(traits::the_workload("keypoint").convolutions);
}

}  // namespace
}  // namespace unidle::workloads::keypoint
