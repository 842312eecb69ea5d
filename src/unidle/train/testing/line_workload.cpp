#include "unidle/train/testing/line_workload.h"

#include <cstring>
#include <limits>

namespace unidle::train::testing {

PointSource::PointSource(bool same_every_epoch)
    : same_(same_every_epoch), fields_{{"x", data::DType::kF32, {3}}, {"y", data::DType::kF32, {1}}} {}

std::uint64_t PointSource::read(const data::ItemRequest& request, std::span<const data::Places> samples) const {
  const auto base = static_cast<float>(request.item) / 12.0F;
  const float x[3] = {request.item == not_finite ? std::numeric_limits<float>::quiet_NaN() : base, base * base,
                      same_ ? 0.3F : static_cast<float>(request.epoch % 5) * 0.1F};
  const float y = 2.0F * base - x[1] + x[2];
  std::memcpy(samples[0][0].data(), x, sizeof(x));
  std::memcpy(samples[0][1].data(), &y, sizeof(y));
  return 0;
}

LineWorkload::LineWorkload(bool holds_out)
    : holds_out_(holds_out), source_(holds_out), model_(std::make_shared<torch::nn::Module>()) {
  weight1_ = model_->register_parameter("weight1", at::empty({8, 3}).uniform_(-0.5, 0.5));
  bias1_ = model_->register_parameter("bias1", at::empty({8}).uniform_(-0.5, 0.5));
  weight2_ = model_->register_parameter("weight2", at::empty({1, 8}).uniform_(-0.5, 0.5));
}

at::Tensor LineWorkload::loss(const std::vector<at::Tensor>& fields) {
  TORCH_CHECK_WITH(OutOfMemoryError, most_samples == 0 || fields[0].size(0) <= most_samples, "out of memory");
  // Noise from torch's generator: a resumed run must restore that too.
  const at::Tensor hidden = at::linear(fields[0], weight1_, bias1_).tanh();
  const at::Tensor drawn = at::randn({1}) * noise;
  const at::Tensor loss = at::mse_loss(at::linear(hidden, weight2_) + drawn, fields[1]);
  losses.push_back(loss.item<double>());
  return loss;
}

at::Tensor LineWorkload::learn(const std::vector<at::Tensor>& fields, double share) {
  if (!without_graph) {
    return {};
  }
  const at::Tensor loss = this->loss(fields);
  (loss * share).backward();
  return loss.detach();
}

at::Tensor LineWorkload::metric_sums(const std::vector<at::Tensor>& fields) {
  const at::Tensor hidden = at::linear(fields[0], weight1_, bias1_).tanh();
  const at::Tensor error = (at::linear(hidden, weight2_) - fields[1]).square().sum();
  batch_sizes.push_back(fields[0].size(0));
  return at::stack({error, at::scalar_tensor(fields[0].size(0))});
}

std::map<std::string, double> LineWorkload::metrics(const std::vector<double>& sums) const {
  return {{"mse", sums[0] / sums[1]}, {"samples", sums[1]}};
}

at::Tensor LineWorkload::metric_sums_of(std::int64_t sample) {
  validated.push_back(sample);
  const std::vector<at::Tensor> fields = {at::empty({1, 3}), at::empty({1, 1})};
  data::Places places;
  for (const at::Tensor& field : fields) {
    places.emplace_back(static_cast<std::byte*>(field.data_ptr()), field.nbytes());
  }
  source_.read({.item = sample}, std::span(&places, 1));
  return metric_sums(fields);
}

}  // namespace unidle::train::testing
