#include "workloads/keypoint/keypoint.h"

#include <fmt/format.h>

#include "unidle/base/error.h"
#include "unidle/data/sources/npy.h"
#include "workloads/keypoint/maps.h"
#include "workloads/keypoint/model.h"

namespace unidle::workloads::keypoint {

namespace {

enum FieldIndex : std::size_t { kImage, kPlaces, kVisible };

std::string part_folder(const train::Config& config, const char* name) {
  const std::filesystem::path folder = train::data_folder(config) / name;
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::kMissing, folder.string(), "there are no pictures yet",
                "make them: " + config.prepare_command());
  }
  return folder.string();
}

data::NpySource open_part(const train::Config& config, const char* name) {
  return {part_folder(config, name), {"image", "points", "visible"}};
}

class Keypoints final : public train::Workload {
 public:
  Keypoints(const train::Config& config, at::Device device)
      : train_(open_part(config, "train")),
        validation_(open_part(config, "validation")),
        model_(config.integer("model.width")) {
    check_shapes(config);
    model_.to(device);
    if (config.flag("layout.channels_last")) {
      model_.use_channels_last();
    }
  }

  const data::Source& source() const override { return train_; }
  std::vector<train::FieldUse> field_uses() const override {
    return {train::FieldUse::kPicture, train::FieldUse::kRaw, train::FieldUse::kRaw};
  }
  torch::nn::Module& model() override { return model_; }

  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    return map_loss(model_.forward(fields[kImage]), fields[kPlaces], fields[kVisible]);
  }

  const data::Source* held_out() const override { return &validation_; }
  at::Tensor metric_sums(const std::vector<at::Tensor>& fields) override {
    const at::Tensor told = predicted_points(model_.forward(fields[kImage]));
    const at::Tensor distance = (told - fields[kPlaces]).square().sum(2).sqrt();
    return at::stack({(distance * fields[kVisible]).sum(), fields[kVisible].sum()});
  }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    return {{"distance_px", sums[1] > 0 ? sums[0] / sums[1] : 0}};
  }

  train::Effective effective() const override {
    return {{"model.width", std::to_string(model_.width())},
            {"input.size", std::to_string(train_.fields()[kImage].shape[0])}};
  }

 private:
  void check_shapes(const train::Config& config) const {
    const std::int64_t height = config.integer("input.size");
    const std::vector<std::int64_t> wanted = {height, 2 * height, kChannels};
    const data::Field& image = train_.fields()[kImage];
    if (image.dtype != data::DType::kU8 || image.shape != wanted) {
      throw Error(ErrorCode::kInput, train::data_folder(config).string(),
                  fmt::format("expected pictures of uint8 {}x{}x{}, as input.size says", height, 2 * height, kChannels),
                  "make them: " + config.prepare_command());
    }
  }

  data::NpySource train_;
  data::NpySource validation_;
  Model model_;
};

}  // namespace

const train::WorkloadKind& keypoint() {
  static const train::WorkloadKind kKind = {
      .traits = traits::the_workload("keypoint"),
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<Keypoints>(config, device);
      },
      .prepare =
          [](const train::Config& config) {
            return prepare_pictures(train::data_folder(config),
                                    {.height = config.integer("input.size"),
                                     .samples = config.integer("prepare.samples"),
                                     .seed = static_cast<std::uint64_t>(config.integer("seed"))});
          },
  };
  return kKind;
}

}  // namespace unidle::workloads::keypoint
