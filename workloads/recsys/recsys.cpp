#include "workloads/recsys/recsys.h"

#include <fmt/format.h>

#include <cmath>

#include "unidle/base/error.h"
#include "unidle/data/sources/table.h"
#include "workloads/recsys/fast_loss.h"
#include "workloads/recsys/model.h"
#include "workloads/recsys/table_files.h"

namespace unidle::workloads::recsys {

namespace {

constexpr std::int64_t kBins = 512;  // of predicted probabilities, for the area under the curve

data::TableOptions table_options(const train::Config& config, data::TablePart part) {
  const std::filesystem::path folder = train::data_folder(config);
  return {.paths = {(folder / "log.csv").string()},
          .features = feature_names(folder, config.prepare_command()),
          .targets = {"play_time_ms", "is_click"},
          .split = {.column = "split", .values = {"validation"}},
          .part = part,
          .standardize = true,
          .fill = data::TableFill::kMean,
          .cache = (folder / "built").string()};
}

/// When all values are 0 or 1, the mean determines the deviation.
void check_is_truth(const data::TableColumn& column) {
  constexpr double kRounding = 1e-6;
  const double expected = std::sqrt(column.mean * (1 - column.mean));
  const bool fits = column.mean >= 0 && column.mean <= 1 && std::abs(column.deviation - expected) < kRounding;
  if (column.missing > 0 || !fits) {
    throw Error(ErrorCode::kInput, fmt::format("table column {}", column.name),
                fmt::format("expected 0 or 1 in each row, found a mean of {:g}, a deviation of {:g} and {} empty cells",
                            column.mean, column.deviation, column.missing));
  }
}

/// Counts the rows with a probability in each bin.
at::Tensor count_by_bin(const at::Tensor& probability, const at::Tensor& weight) {
  const at::Tensor bin = (probability * kBins).to(at::kLong).clamp(0, kBins - 1);
  return at::zeros({kBins}, weight.options()).scatter_add_(0, bin, weight);
}

class Recommender final : public train::Workload {
 public:
  Recommender(const train::Config& config, at::Device device)
      : train_(table_options(config, data::TablePart::kTrain)),
        validation_(table_options(config, data::TablePart::kValidation)),
        model_(train_.features(), config.integer("model.width")),
        fast_loss_(model_.parameters()) {
    check_is_truth(train_.columns()[static_cast<std::size_t>(train_.features() + kClick)]);
    model_.to(device);
  }

  const data::Source& source() const override { return train_; }
  std::vector<train::FieldUse> field_uses() const override { return {train::FieldUse::kRaw, train::FieldUse::kRaw}; }
  torch::nn::Module& model() override { return model_; }

  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    return loss_of(model_.forward(fields[0]), fields[1]);
  }
  at::Tensor learn(const std::vector<at::Tensor>& fields, double share) override {
    return fast_loss_.fits(fields[0], fields[1]) ? fast_loss_.learn(fields[0], fields[1], share) : at::Tensor();
  }

  const data::Source* held_out() const override { return &validation_; }
  at::Tensor metric_sums(const std::vector<at::Tensor>& fields) override {
    const Prediction prediction = model_.forward(fields[0]);
    const at::Tensor click = fields[1].select(1, kClick).to(at::kDouble);
    const at::Tensor logit = prediction.click.to(at::kDouble);
    const at::Tensor error = prediction.log_play.to(at::kDouble) - log_seconds(fields[1].select(1, kPlayTime));
    const at::Tensor log_loss = at::binary_cross_entropy_with_logits(logit, click, {}, {}, at::Reduction::Sum);
    const at::Tensor totals = at::stack({at::ones_like(click).sum(), error.square().sum(), log_loss});
    const at::Tensor probability = logit.sigmoid();
    return at::cat({totals, count_by_bin(probability, click), count_by_bin(probability, 1 - click)});
  }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    const double* clicks = sums.data() + 3;
    return {{"rmse_log", std::sqrt(sums[1] / sums[0])},
            {"log_loss", sums[2] / sums[0]},
            {"auc", area_under_curve(clicks, clicks + kBins, kBins)}};
  }

  train::Effective effective() const override { return {{"model.width", std::to_string(model_.width())}}; }

 private:
  data::TableSource train_;
  data::TableSource validation_;
  Model model_;
  FastLoss fast_loss_;
};

}  // namespace

double area_under_curve(const double* clicks, const double* others, std::size_t bins) {
  double area = 0;
  double clicks_so_far = 0;
  double others_so_far = 0;
  for (std::size_t bin = 0; bin < bins; ++bin) {
    area += clicks[bin] * (others_so_far + others[bin] / 2);
    clicks_so_far += clicks[bin];
    others_so_far += others[bin];
  }
  return clicks_so_far > 0 && others_so_far > 0 ? area / (clicks_so_far * others_so_far) : 0.5;
}

const train::WorkloadKind& recsys() {
  static const train::WorkloadKind kKind = {
      .traits = traits::the_workload("recsys"),
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<Recommender>(config, device);
      },
      .prepare =
          [](const train::Config& config) {
            return prepare_table(train::data_folder(config),
                                 {.source = config.text("prepare.source"),
                                  .rows = config.integer("prepare.samples"),
                                  .parts = static_cast<int>(config.integer("prepare.parts")),
                                  .seed = static_cast<std::uint64_t>(config.integer("seed"))});
          },
  };
  return kKind;
}

}  // namespace unidle::workloads::recsys
