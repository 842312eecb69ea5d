#include "workloads/superres/superres.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/data/sources/image_pairs.h"
#include "unidle/train/input/transfer.h"
#include "workloads/superres/model.h"

namespace unidle::workloads::superres {

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::size_t cache_bytes(const train::Config& config) {
  return config.text("cache.features") == "memory" ? static_cast<std::size_t>(config.integer("cache.memory_mib")) * kMib
                                                   : 0;
}

std::string part(const train::Config& config, const char* name) {
  const std::filesystem::path folder = train::data_folder(config) / name;
  if (!std::filesystem::is_directory(folder / "high")) {
    throw Error(ErrorCode::kMissing, folder.string(), "there are no pictures yet",
                "make them: " + config.prepare_command());
  }
  return folder.string();
}

at::Tensor to_tensor(const data::Picture& picture) {
  // from_blob requires a mutable pointer, but the data is only read.
  return at::from_blob(const_cast<std::uint8_t*>(picture.pixels.data()), {1, picture.height, picture.width, 3},
                       at::TensorOptions(at::kByte));
}

torch::jit::Module load_features(const std::string& path, at::Device device) {
  try {
    return torch::jit::load(path, device);
  } catch (const c10::Error&) {
    throw Error(ErrorCode::kInput, path, "is not a TorchScript module, or is damaged",
                "make one with torch.jit.script(features).save(path)");
  }
}

/// Distance of deep features computed by a TorchScript module that maps pictures to one tensor.
class PerceptualLoss {
 public:
  PerceptualLoss(const train::Config& config, at::Device device) : weight_(config.real("loss.perceptual_weight")) {
    if (weight_ <= 0) {
      return;
    }
    const std::string& path = config.text("loss.perceptual_features");
    if (!std::filesystem::is_regular_file(path)) {
      throw Error(ErrorCode::kInput, config.location("loss.perceptual_weight") + ": loss.perceptual_features",
                  "expected a TorchScript file, found '" + path + "'");
    }
    features_.emplace(load_features(path, device));
    features_->eval();
    for (const at::Tensor& parameter : features_->parameters()) {
      parameter.requires_grad_(false);
    }
  }

  at::Tensor add_to(const at::Tensor& loss, const at::Tensor& picture, const at::Tensor& reference) {
    if (!features_) {
      return loss;
    }
    const at::Tensor wanted = features_->forward({reference}).toTensor().detach();
    return loss + weight_ * at::l1_loss(features_->forward({picture}).toTensor(), wanted);
  }

  double weight() const { return features_ ? weight_ : 0; }

 private:
  double weight_;
  std::optional<torch::jit::Module> features_;
};

class SuperResolution final : public train::Workload {
 public:
  SuperResolution(const train::Config& config, at::Device device)
      : device_(device),
        train_(part(config, "train"), {.crop = static_cast<int>(config.integer("input.size")),
                                       .scale = kScale,
                                       .crops_per_item = static_cast<int>(config.integer("data.crops_per_decode")),
                                       .cache_bytes = cache_bytes(config)}),
        validation_(part(config, "validation"),
                    {.crop = kScale,
                     .scale = kScale,
                     .cache_bytes = cache_bytes(config) - std::min(cache_bytes(config), train_.decoded_bytes())}),
        model_({.width = config.integer("model.width"),
                .depth = config.integer("model.depth"),
                .channels_last = config.flag("layout.channels_last"),
                .recompute_blocks = config.flag("grad.checkpointing")}),
        perceptual_(config, device) {
    model_.to(device);
  }

  const data::Source& source() const override { return train_; }
  std::vector<train::FieldUse> field_uses() const override {
    return {train::FieldUse::kPicture, train::FieldUse::kPicture};
  }
  torch::nn::Module& model() override { return model_; }

  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    const at::Tensor picture = model_.forward(fields[data::ImagePairSource::kLow]);
    const at::Tensor& reference = fields[data::ImagePairSource::kHigh];
    return perceptual_.add_to(at::mse_loss(picture, reference), picture, reference);
  }

  // Whole photographs of different sizes. PSNR is the mean over them.
  std::int64_t validation_samples() const override { return validation_.items(); }
  at::Tensor metric_sums_of(std::int64_t sample) override {
    const data::ImagePairSource::Pair pair = validation_.read_pair(sample);
    const at::Tensor quality = psnr(model_.forward(on_device(*pair.low)), on_device(*pair.high));
    return at::stack({quality, at::ones_like(quality)});
  }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    return {{"psnr", sums[0] / sums[1]}};
  }

  train::Effective effective() const override {
    return {{"model.width", std::to_string(model_.width())},
            {"model.depth", std::to_string(model_.depth())},
            {"input.size", std::to_string(train_.fields()[data::ImagePairSource::kHigh].shape[0])},
            {"data.crops_per_decode", std::to_string(train_.samples_per_item())},
            {"cache.features", train_.cache().budget_bytes() > 0 ? "memory" : "off"},
            {"grad.checkpointing", model_.options().recompute_blocks ? "true" : "false"},
            {"loss.perceptual_weight", fmt::format("{}", perceptual_.weight())}};
  }

 private:
  at::Tensor on_device(const data::Picture& picture) const {
    return train::picture_to_float(to_tensor(picture).to(device_), model_.options().channels_last);
  }

  at::Device device_;
  data::ImagePairSource train_;
  data::ImagePairSource validation_;
  Model model_;
  PerceptualLoss perceptual_;
};

at::Tensor luma(const at::Tensor& picture) {
  return (65.481 * picture.select(1, 0) + 128.553 * picture.select(1, 1) + 24.966 * picture.select(1, 2) + 16.0) /
         255.0;
}

}  // namespace

at::Tensor psnr(const at::Tensor& picture, const at::Tensor& reference) {
  const at::Tensor difference = luma(picture.to(at::kFloat).clamp(0, 1)) - luma(reference);
  constexpr double kSmallest = 1e-12;  // limits equal pictures to 120 dB instead of infinity
  return -10 * difference.square().mean().to(at::kDouble).clamp_min(kSmallest).log10();
}

const train::WorkloadKind& superres() {
  static const train::WorkloadKind kKind = {
      .traits = traits::the_workload("superres"),
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<SuperResolution>(config, device);
      },
      .prepare =
          [](const train::Config& config) {
            return prepare_photographs(train::data_folder(config), config.text("prepare.source"));
          },
  };
  return kKind;
}

}  // namespace unidle::workloads::superres
