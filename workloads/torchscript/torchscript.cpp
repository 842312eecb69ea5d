// The workload `torchscript`: trains a TorchScript module on the rows of a table, without C++.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/data/sources/table.h"
#include "unidle/train/workload.h"
#include "workloads/torchscript/script_model.h"

namespace unidle::workloads::torchscript {

namespace {

using Tensors = std::vector<at::Tensor>;

/// The loss named by script.loss. Classes are the targets' values, counted from 0.
at::Tensor loss_of(const std::string& name, const at::Tensor& output, const at::Tensor& target) {
  if (name == "cross-entropy") {
    return at::cross_entropy_loss(output, target.select(1, 0).to(at::kLong));
  }
  if (name == "binary-cross-entropy") {
    return at::binary_cross_entropy_with_logits(output, target);
  }
  return name == "l1" ? at::l1_loss(output, target) : at::mse_loss(output, target);
}

bool takes_logits(const std::string& loss) { return loss == "cross-entropy" || loss == "binary-cross-entropy"; }

/// Throws kInput for targets that the loss would misread: a class that is not an integer from 0 on, a probability
/// outside 0..1.
void check_targets(const data::TableSource& rows, const std::string& loss) {
  constexpr std::int64_t kAtOnce = 4096;
  if (!takes_logits(loss)) {
    return;
  }
  const std::vector<data::Field>& fields = rows.fields();
  at::Tensor features = at::empty({kAtOnce, rows.features()});
  at::Tensor targets = at::empty({kAtOnce, static_cast<std::int64_t>(fields[1].bytes() / sizeof(float))});
  std::vector<data::ItemRequest> requests;
  for (std::int64_t first = 0; first < rows.items(); first += kAtOnce) {
    requests.clear();
    for (std::int64_t row = first; row < std::min(first + kAtOnce, rows.items()); ++row) {
      requests.push_back({row, 0, 0});
    }
    const auto place = [](at::Tensor& tensor, const data::Field& field) {
      return data::Rows{static_cast<std::byte*>(tensor.mutable_data_ptr()), field.bytes()};
    };
    const data::Rows places[] = {place(features, fields[0]), place(targets, fields[1])};
    rows.gather(requests, places);
    const at::Tensor some = targets.narrow(0, 0, static_cast<std::int64_t>(requests.size()));
    const bool classes = loss == "cross-entropy";
    const at::Tensor wrong = classes ? some.lt(0).logical_or(some.frac().ne(0)) : some.lt(0).logical_or(some.gt(1));
    if (wrong.any().item<bool>()) {
      throw Error(ErrorCode::kInput, "script.targets",
                  fmt::format("has {:g} in row {} of its part; the loss {} expects {}",
                              some.masked_select(wrong)[0].item<float>(),
                              first + wrong.any(1).nonzero()[0].item<std::int64_t>() + 1, loss,
                              classes ? "the number of a class, from 0" : "0 to 1"));
    }
  }
}

/// Throws kUsage for a regression error of logits.
std::string metric_for(const train::Config& config, const std::string& loss) {
  std::string metric = config.text("script.metric");
  if (metric == "auto") {
    return takes_logits(loss) ? "accuracy" : "rmse";
  }
  if (takes_logits(loss) && metric != "accuracy") {
    throw Error(ErrorCode::kUsage, config.name(),
                fmt::format("script.metric: {} of logits says nothing; the loss {} takes logits", metric, loss),
                "script.metric: accuracy");
  }
  return metric;
}

/// The metric's sums and count over one batch, for one of several classes or for true and false.
at::Tensor sums_of(const std::string& metric, const std::string& loss, const at::Tensor& output,
                   const at::Tensor& target) {
  if (metric == "accuracy") {
    const bool chooses = loss != "binary-cross-entropy" && output.size(1) > 1;
    const at::Tensor chosen = chooses ? output.argmax(1, /*keepdim=*/true) : output.gt(0);
    const at::Tensor right = chosen.eq(target.to(chosen.scalar_type()));
    return at::stack({right.sum(), at::ones_like(right, at::kLong).sum()});
  }
  const at::Tensor error = output - target;
  return at::stack({metric == "mae" ? error.abs().sum() : error.square().sum(), at::ones_like(error).sum()});
}

std::string required(const train::Config& config, const char* key, const char* example) {
  if (config.text(key).empty()) {
    throw Error(ErrorCode::kInput, config.name(), fmt::format("key '{}' is missing", key),
                fmt::format("add e.g. {}", example));
  }
  return config.text(key);
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

data::TableOptions table(const train::Config& config, data::TablePart part) {
  return {.paths = {required(config, "script.table", "script.table: rows.csv")},
          .targets = names_in(required(config, "script.targets", "script.targets: price")),
          .split = {.validation = config.real("script.held_out")},
          .part = part,
          .standardize = config.flag("script.standardize")};
}

class Script final : public train::Workload {
 public:
  Script(const train::Config& config, at::Device device)
      : loss_(config.text("script.loss")),
        metric_(metric_for(config, loss_)),
        path_(required(config, "script.model", "script.model: model.pt")),
        train_(table(config, data::TablePart::kTrain)),
        held_out_(table(config, data::TablePart::kValidation)),
        model_(load_script(path_, device)) {
    model_->train();
    check_targets(train_, loss_);
    check_targets(held_out_, loss_);
  }

  const data::Source& source() const override { return train_; }
  const data::Source* held_out() const override { return &held_out_; }
  std::vector<train::FieldUse> field_uses() const override { return {train::FieldUse::kRaw, train::FieldUse::kRaw}; }
  torch::nn::Module& model() override { return *model_; }

  at::Tensor loss(const Tensors& fields) override {
    const at::Tensor outputs = output(fields);
    try {
      return loss_of(loss_, outputs, fields[1]);
    } catch (const c10::IndexError&) {
      refuse_classes(outputs.size(1), fields[1]);
    }
  }
  at::Tensor metric_sums(const Tensors& fields) override { return sums_of(metric_, loss_, output(fields), fields[1]); }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    const double mean = sums[0] / sums[1];
    return {{metric_, metric_ == "rmse" ? std::sqrt(mean) : mean}};
  }
  train::Effective effective() const override { return {{"script.loss", loss_}, {"script.metric", metric_}}; }

 private:
  /// [rows, outputs]
  at::Tensor output(const Tensors& fields) {
    at::Tensor output = model_->forward(fields[0]);
    const std::int64_t targets = fields[1].size(1);
    const bool fits = output.dim() == 2 && output.size(0) == fields[0].size(0) &&
                      (output.size(1) == targets || loss_ == "cross-entropy");
    if (!fits) {
      throw Error(ErrorCode::kInput, path_,
                  fmt::format("gives {} for rows {} and {} targets", c10::str(output.sizes()),
                              c10::str(fields[0].sizes()), targets),
                  "its forward takes [rows, features] and gives [rows, targets], or [rows, classes]");
    }
    return output;
  }

  [[noreturn]] void refuse_classes(std::int64_t classes, const at::Tensor& targets) const {
    throw Error(ErrorCode::kInput, "script.targets",
                fmt::format("has numbers from {} to {}, and {} gives {} classes", targets.min().item<float>(),
                            targets.max().item<float>(), path_, classes),
                "classes are numbered from 0; each needs an output of the model");
  }

  std::string loss_;
  std::string metric_;
  std::string path_;
  data::TableSource train_;
  data::TableSource held_out_;
  std::unique_ptr<ScriptModel> model_;
};

}  // namespace

const train::WorkloadKind& torchscript() {
  static const traits::Workload kTraits = {
      .name = "torchscript", .summary = "a TorchScript model over the rows of a table", .small_data = true};
  static const train::WorkloadKind kKind = {
      .traits = kTraits,
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<Script>(config, device);
      },
      .prepare = {},
  };
  return kKind;
}

}  // namespace unidle::workloads::torchscript
