#include "unidle/train/testing/line_workload.h"

#include <cstring>

namespace unidle::train::testing {

PointSource::PointSource() : fields_{{"x", data::DType::kF32, {3}}, {"y", data::DType::kF32, {1}}} {}

std::uint64_t PointSource::read(const data::ItemRequest& request, std::span<const data::Places> samples) const {
  const auto base = static_cast<float>(request.item) / 12.0F;
  const float x[3] = {base, base * base, static_cast<float>(request.epoch % 5) * 0.1F};
  const float y = 2.0F * x[0] - x[1] + x[2];
  std::memcpy(samples[0][0].data(), x, sizeof(x));
  std::memcpy(samples[0][1].data(), &y, sizeof(y));
  return 0;
}

LineWorkload::LineWorkload() : model_(std::make_shared<torch::nn::Module>()) {
  weight1_ = model_->register_parameter("weight1", at::empty({8, 3}).uniform_(-0.5, 0.5));
  bias1_ = model_->register_parameter("bias1", at::empty({8}).uniform_(-0.5, 0.5));
  weight2_ = model_->register_parameter("weight2", at::empty({1, 8}).uniform_(-0.5, 0.5));
}

at::Tensor LineWorkload::loss(const std::vector<at::Tensor>& fields) {
  // Noise from torch's generator: what a resumed run must restore, too.
  const at::Tensor hidden = at::linear(fields[0], weight1_, bias1_).tanh();
  const at::Tensor noise = at::randn({1}) * 1e-3;
  const at::Tensor loss = at::mse_loss(at::linear(hidden, weight2_) + noise, fields[1]);
  losses.push_back(loss.item<double>());
  return loss;
}

std::map<std::string, double> LineWorkload::validate() {
  ++validations;
  return {{"norm", weight1_.detach().norm().item<double>()}};
}

}  // namespace unidle::train::testing
