#include "workloads/timeseries/timeseries.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/sources/windows.h"
#include "workloads/common/npy_file.h"
#include "workloads/timeseries/model.h"

namespace unidle::workloads::timeseries {

namespace {

/// A prepared file and its windows.
class Series {
 public:
  Series(const train::Config& config, const char* file)
      : days_(read(config, file)), view_(view_of(days_)), windows_({&view_, 1}, options(config)) {}

  const data::WindowSource& windows() const { return windows_; }
  std::int64_t features() const { return days_.size(1); }

 private:
  static at::Tensor read(const train::Config& config, const char* file) {
    const std::filesystem::path path = train::data_folder(config) / file;
    if (!std::filesystem::is_regular_file(path)) {
      throw Error(ErrorCode::kMissing, path.string(), "there is no series yet", "make it: " + config.prepare_command());
    }
    return read_npy(path);
  }
  static data::ArrayView view_of(const at::Tensor& days) {
    constexpr std::int64_t kBytes = sizeof(float);
    return {static_cast<const std::byte*>(days.const_data_ptr()),
            data::DType::kF32,
            days.sizes().vec(),
            {days.stride(0) * kBytes, kBytes}};
  }
  static data::WindowOptions options(const train::Config& config) {
    return {.length = config.integer("input.size"), .targets = {0}};
  }

  at::Tensor days_;
  data::ArrayView view_;
  data::WindowSource windows_;
};

double target_deviation(const train::Config& config) {
  const std::filesystem::path path = train::data_folder(config) / "series.json";
  try {
    return nlohmann::json::parse(read_file(path)).at("deviation").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kInput, path.string(), "expected a JSON object with a number \"deviation\"",
                "make it anew: " + config.prepare_command());
  }
}

class TimeSeries final : public train::Workload {
 public:
  TimeSeries(const train::Config& config, at::Device device)
      : train_(config, "train.npy"),
        validation_(config, "validation.npy"),
        deviation_(target_deviation(config)),
        model_({.features = train_.features(),
                .width = config.integer("model.width"),
                .depth = config.integer("model.depth")}) {
    model_.to(device);
  }

  const data::Source& source() const override { return train_.windows(); }
  std::vector<train::FieldUse> field_uses() const override { return {train::FieldUse::kRaw, train::FieldUse::kRaw}; }
  torch::nn::Module& model() override { return model_; }

  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    return at::mse_loss(model_.forward(fields[0]).to(at::kFloat), fields[1].flatten());
  }

  const data::Source* held_out() const override { return &validation_.windows(); }
  at::Tensor metric_sums(const std::vector<at::Tensor>& fields) override {
    const at::Tensor error = model_.forward(fields[0]).to(at::kDouble) - fields[1].flatten();
    return at::stack({error.square().sum(), error.abs().sum(), at::full_like(error, 1).sum()});
  }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    return {{"rmse", deviation_ * std::sqrt(sums[0] / sums[2])}, {"mae", deviation_ * sums[1] / sums[2]}};
  }

  train::Effective effective() const override {
    return {{"model.width", std::to_string(model_.width())},
            {"model.depth", std::to_string(model_.depth())},
            {"input.size", std::to_string(train_.windows().fields()[0].shape[0])}};
  }

 private:
  Series train_;
  Series validation_;
  double deviation_;  // of the target in its unit; the model works on scaled values
  Forecaster model_;
};

}  // namespace

const train::WorkloadKind& timeseries() {
  static const train::WorkloadKind kKind = {
      .traits = traits::the_workload("timeseries"),
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<TimeSeries>(config, device);
      },
      .prepare =
          [](const train::Config& config) {
            return prepare_series(train::data_folder(config), config.text("prepare.source"));
          },
  };
  return kKind;
}

}  // namespace unidle::workloads::timeseries
