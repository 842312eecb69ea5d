#include "unidle/train/evaluation.h"

#include <algorithm>
#include <utility>

namespace unidle::train {

namespace {

/// Puts the model into evaluation mode and back.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& model) : model_(model) { model_.eval(); }
  ~EvaluationMode() { model_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& model_;
};

std::vector<double> read_back(const at::Tensor& sums) {
  const at::Tensor host = sums.to(at::kCPU, at::kDouble).contiguous();
  const double* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

}  // namespace

Evaluation::Evaluation(Workload& workload, const Config& config, at::Device device, Ranks* ranks)
    : workload_(workload), config_(config), device_(device), ranks_(ranks) {}

std::int64_t Evaluation::samples() const {
  const data::Source* held_out = workload_.held_out();
  return held_out != nullptr ? held_out->items() * held_out->samples_per_item() : workload_.validation_samples();
}

std::map<std::string, double> Evaluation::run(const Precision& precision) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(workload_.model());
  if (const data::Source* held_out = workload_.held_out()) {
    return run_held_out(precision, *held_out);
  }
  const AutocastGuard autocast = precision.autocast();
  return workload_.validate();
}

const data::Source& Evaluation::share_of(const data::Source& held_out) {
  if (ranks_ == nullptr) {
    return held_out;
  }
  std::vector<std::int64_t> items;
  for (std::int64_t item = ranks_->rank(); item < held_out.items(); item += ranks_->world()) {
    items.push_back(item);
  }
  if (items.empty()) {
    items.push_back(0);
  }
  share_ = std::make_unique<data::Subset>(held_out, std::move(items));
  return *share_;
}

/// In the order of the source, each sample once.
std::unique_ptr<Input> Evaluation::make_input(const data::Source& held_out) const {
  InputOptions options = input_options(config_);
  const std::int64_t wanted = config_.integer("validation.batch");
  const std::int64_t samples = held_out.items() * held_out.samples_per_item();
  options.loader.batch = std::min(wanted > 0 ? wanted : config_.integer("batch.size"), samples);
  options.loader.shuffle = false;
  options.loader.epoch_end = data::EpochEnd::kShort;
  // No more workers than batches: they would only make the next epoch's, which nobody takes.
  const std::int64_t batches = (samples + options.loader.batch - 1) / options.loader.batch;
  options.loader.workers = static_cast<int>(std::min<std::int64_t>(options.loader.workers, batches));
  return std::make_unique<Input>(held_out, workload_.field_uses(), device_, options);
}

std::map<std::string, double> Evaluation::run_held_out(const Precision& precision, const data::Source& held_out) {
  std::unique_ptr<Input> input = std::move(kept_);
  if (!input) {
    input = make_input(share_of(held_out));
  }
  at::Tensor sums;
  for (std::int64_t batch = input->loader().batches_per_epoch(); batch > 0; --batch) {
    const std::vector<at::Tensor> fields = input->move(input->fetch());
    const AutocastGuard autocast = precision.autocast();
    const at::Tensor part = workload_.metric_sums(fields).to(at::kDouble);
    sums = sums.defined() ? sums.add_(part) : part;
  }
  if (ranks_ != nullptr) {
    if (ranks_->rank() >= held_out.items()) {
      sums.zero_();  // its share was another's item, for the shape of the sums
    }
    ranks_->sum(sums);
  }
  if (input->on_device()) {
    kept_ = std::move(input);
  }
  return workload_.metrics(read_back(sums));
}

}  // namespace unidle::train
