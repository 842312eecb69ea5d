#include "unidle/train/evaluation.h"

#include <algorithm>
#include <utility>

namespace unidle::train {

namespace {

/// Sets the model to evaluation mode, and back at the end of the scope.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& model) : model_(model) { model_.eval(); }
  ~EvaluationMode() { model_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& model_;
};

void add_to(at::Tensor& sums, const at::Tensor& part) {
  sums = sums.defined() ? sums.add_(part) : part.to(at::kDouble);
}

std::vector<double> read_back(const at::Tensor& sums) {
  const at::Tensor host = sums.to(at::kCPU, at::kDouble).contiguous();
  const double* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

}  // namespace

Evaluation::Evaluation(Workload& workload, const Config& config, at::Device device, Ranks* ranks)
    : workload_(workload), config_(config), device_(device), ranks_(ranks) {}

std::int64_t Evaluation::items() const {
  const data::Source* held_out = workload_.held_out();
  return held_out != nullptr ? held_out->items() : workload_.validation_samples();
}

std::vector<std::int64_t> Evaluation::share() const {
  std::vector<std::int64_t> items;
  const int world = ranks_ != nullptr ? ranks_->world() : 1;
  for (std::int64_t item = ranks_ != nullptr ? ranks_->rank() : 0; item < this->items(); item += world) {
    items.push_back(item);
  }
  if (items.empty()) {
    items.push_back(0);
  }
  return items;
}

std::int64_t Evaluation::samples() const {
  if (items() == 0 || !share_counts()) {
    return 0;
  }
  const data::Source* held_out = workload_.held_out();
  return static_cast<std::int64_t>(share().size()) * (held_out != nullptr ? held_out->samples_per_item() : 1);
}

std::map<std::string, double> Evaluation::run(const Precision& precision) {
  if (items() == 0) {
    return {};
  }
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(workload_.model());
  const data::Source* held_out = workload_.held_out();
  at::Tensor sums = held_out != nullptr ? sums_of_batches(precision, *held_out) : sums_of_samples(precision);
  if (ranks_ != nullptr) {
    if (!share_counts()) {
      sums.zero_();
    }
    ranks_->sum(sums);
  }
  return workload_.metrics(read_back(sums));
}

/// In the order of the source, each sample once.
std::unique_ptr<Input> Evaluation::make_input(const data::Source& held_out) const {
  InputOptions options = input_options(config_);
  const std::int64_t wanted = config_.integer("validation.batch");
  const std::int64_t samples = held_out.items() * held_out.samples_per_item();
  options.loader.batch = std::min(wanted > 0 ? wanted : config_.integer("batch.size"), samples);
  options.loader.shuffle = false;
  options.loader.epoch_end = data::EpochEnd::kShort;
  // No more workers than batches: the extra ones would prepare the next epoch, which is never read.
  const std::int64_t batches = (samples + options.loader.batch - 1) / options.loader.batch;
  options.loader.workers = static_cast<int>(std::min<std::int64_t>(options.loader.workers, batches));
  return std::make_unique<Input>(held_out, workload_.field_uses(), device_, options);
}

at::Tensor Evaluation::sums_of_batches(const Precision& precision, const data::Source& held_out) {
  std::unique_ptr<Input> input = std::move(kept_);
  if (!input) {
    if (ranks_ != nullptr) {
      share_ = std::make_unique<data::Subset>(held_out, share());
    }
    input = make_input(share_ ? *share_ : held_out);
  }
  at::Tensor sums;
  for (std::int64_t batch = input->loader().batches_per_epoch(); batch > 0; --batch) {
    const std::vector<at::Tensor> fields = input->fields(input->move(input->fetch()));
    const AutocastGuard autocast = precision.autocast();
    add_to(sums, workload_.metric_sums(fields));
    input->consumed();
    input->settle();
  }
  if (input->on_device()) {
    kept_ = std::move(input);
  }
  return sums;
}

at::Tensor Evaluation::sums_of_samples(const Precision& precision) {
  at::Tensor sums;
  const AutocastGuard autocast = precision.autocast();
  for (const std::int64_t sample : share()) {
    add_to(sums, workload_.metric_sums_of(sample));
  }
  return sums;
}

}  // namespace unidle::train
