#include "workloads/superres/superres.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/image.h"
#include "unidle/train/device.h"
#include "unidle/train/trainer.h"
#include "workloads/registry.h"

namespace unidle::workloads::superres {
namespace {

using ::testing::HasSubstr;
using train::Config;

void write_picture(const std::filesystem::path& path, int width, int height, int phase) {
  data::Picture picture{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width * 3; ++x) {
      picture.pixels.push_back(static_cast<std::uint8_t>(128 + 100 * std::sin(0.1 * (x + 2 * y + phase))));
    }
  }
  make_folders(path.parent_path());
  write_file_atomic(path, data::encode_png(picture));
}

/// Writes five training and two validation pairs of small pictures.
void write_pictures(const std::filesystem::path& folder) {
  for (const char* part : {"train", "validation"}) {
    for (int i = 0; i < (std::string(part) == "train" ? 5 : 2); ++i) {
      const std::string name = std::to_string(i) + ".png";
      write_picture(folder / part / "high" / name, 64 + 8 * i, 48, 7 * i);
      write_picture(folder / part / "low" / name, 16 + 2 * i, 12, 7 * i);
    }
  }
}

train::Summary train_small(const std::filesystem::path& folder, std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"data.folder=" + folder.string(), "cpu.threads=1", "input.size=32", "model.width=16",
                    "model.depth=1", "train.samples=40", "batch.size=4", "device=cpu", "optimizer.lr=0.002"});
  const Config config = Config::from_text("workload: superres\n", "s.yaml", overrides);
  train::configure_torch(config);
  const auto workload = find_workload(config).open(config, at::kCPU);
  train::Events events;
  train::Trainer trainer(*workload, config, at::kCPU, events, {});
  return trainer.run();
}

TEST(Superres, TrainsAndReadsItsKnobsBack) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const train::Summary summary = train_small(folder.path(), {"layout.channels_last=true", "cache.features=memory"});
  EXPECT_EQ(summary.steps, 10);
  EXPECT_LT(summary.loss_last, summary.loss_first);
  EXPECT_TRUE(std::isfinite(summary.metric.at("psnr")));
  EXPECT_EQ(summary.effective.at("layout.channels_last"), "true");
  EXPECT_EQ(summary.effective.at("cache.features"), "memory");
  EXPECT_EQ(summary.effective.at("model.width"), "16");
  EXPECT_EQ(summary.effective.at("input.size"), "32");
}

// Options that only save waiting must not change the result of training.
TEST(Superres, CacheWorkersAndMetricsChangeNothing) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const train::Summary plain = train_small(folder.path(), {"validation.interval=1"});
  const train::Summary other = train_small(
      folder.path(), {"cache.features=memory", "loader.workers=2", "metrics.interval=4", "validation.interval=0"});
  EXPECT_EQ(plain.loss_first, other.loss_first);
  EXPECT_EQ(plain.loss_last, other.loss_last);
  EXPECT_EQ(plain.metric, other.metric);
}

TEST(Superres, LayoutFusedUpdateAndRecomputationChangeRoundingOnly) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const train::Summary plain = train_small(folder.path(), {"optimizer.lr=0.0002"});
  for (const char* knob : {"layout.channels_last=true", "optimizer.fused=true", "grad.checkpointing=true"}) {
    const train::Summary other = train_small(folder.path(), {knob, "optimizer.lr=0.0002"});
    EXPECT_NEAR(plain.loss_last.value(), other.loss_last.value(), 1e-3) << knob;
    EXPECT_NEAR(plain.metric.at("psnr"), other.metric.at("psnr"), 0.05) << knob;
  }
}

TEST(Superres, PsnrIsTheMeanOverWholePicturesHoweverTheyAreSharedOut) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const Config config = Config::from_text("workload: superres\n", "s.yaml",
                                          {"data.folder=" + folder.path().string(), "input.size=32", "device=cpu"});
  const auto workload = find_workload(config).open(config, at::kCPU);
  const train::Precision precision("off", at::kCPU);
  const double both = train::Evaluation(*workload, config, at::kCPU).run(precision).at("psnr");
  const at::NoGradGuard no_grad;
  workload->model().eval();
  ASSERT_EQ(workload->validation_samples(), 2);
  double total = 0;
  for (std::int64_t picture = 0; picture < 2; ++picture) {
    const at::Tensor sums = workload->metric_sums_of(picture).to(at::kDouble);
    EXPECT_EQ(sums[1].item<double>(), 1);
    total += sums[0].item<double>();
  }
  EXPECT_NEAR(both, total / 2, 1e-9);
}

TEST(Superres, LowPrecisionTrains) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const train::Summary summary = train_small(folder.path(), {"precision.amp=bf16", "layout.channels_last=true"});
  EXPECT_EQ(summary.effective.at("precision.amp"), "bf16");
  EXPECT_LT(summary.loss_last, summary.loss_first);
}

TEST(Superres, WithoutPicturesItSaysHowToMakeThem) {
  const TemporaryFolder folder;
  try {
    train_small(folder.path(), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.hint(), HasSubstr("unidle-train s.yaml --prepare"));
  }
}

TEST(Superres, PerceptualLossNeedsItsFile) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  try {
    train_small(folder.path(), {"loss.perceptual_weight=0.1"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.subject(), HasSubstr("loss.perceptual_features"));
  }
  const std::filesystem::path damaged = folder.path() / "features.pt";
  write_file_atomic(damaged, "no zip archive");
  try {
    train_small(folder.path(), {"loss.perceptual_weight=0.1", "loss.perceptual_features=" + damaged.string()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_EQ(error.subject(), damaged.string());
  }
}

TEST(Superres, MoreThreadsThanCanWorkAreRefused) {
  const TemporaryFolder folder;
  try {
    train_small(folder.path(), {"cpu.threads=9999"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.message(), HasSubstr("0 to 1024"));
  }
}

TEST(Superres, IsWhatItsTraitsSay) {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const Config config =
      Config::from_text("workload: superres\n", "s.yaml", {"data.folder=" + folder.path().string(), "input.size=32"});
  const train::WorkloadKind& kind = find_workload(config);
  const auto workload = kind.open(config, at::kCPU);
  const auto parameters = workload->model().parameters();
  const bool convolves = std::any_of(parameters.begin(), parameters.end(),
                                     [](const at::Tensor& weight) { return weight.dim() == 4 && weight.size(3) > 1; });
  EXPECT_EQ(kind.traits.convolutions, convolves);
}

TEST(Registry, NamesTheKnownWorkloads) {
  const Config config = Config::from_text("workload: upscale\n", "s.yaml");
  try {
    find_workload(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.subject(), "s.yaml:1: workload");
    EXPECT_THAT(error.message(), HasSubstr("superres"));
  }
}

TEST(Psnr, OfAKnownError) {
  const at::Tensor reference = at::full({1, 3, 8, 8}, 0.5F);
  // A grey error of 0.1 is 0.1 * 219 / 255 in luma.
  EXPECT_NEAR(psnr(reference + 0.1, reference).item<double>(), -20 * std::log10(0.1 * 219 / 255), 1e-3);
  EXPECT_NEAR(psnr(at::full({1, 3, 8, 8}, 7.0F), at::ones({1, 3, 8, 8})).item<double>(), 120, 1e-3);
}

}  // namespace
}  // namespace unidle::workloads::superres
