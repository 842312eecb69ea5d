#include "unidle/train/step/precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>

namespace unidle::train {

namespace {

constexpr float kFirstScale = 65536.0F;
constexpr double kGrowth = 2.0;
constexpr double kBackoff = 0.5;
constexpr std::int64_t kGrowthInterval = 2000;

}  // namespace

AutocastGuard::AutocastGuard(at::DeviceType device, at::ScalarType dtype)
    : device_(device), active_(dtype != at::kFloat) {
  if (active_) {
    was_enabled_ = at::autocast::is_autocast_enabled(device_);
    was_dtype_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, dtype);
  }
}

AutocastGuard::~AutocastGuard() {
  if (active_) {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_dtype_);
  }
}

Precision::Precision(const std::string& mode, at::Device device, bool check_gradients) : device_(device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  if (mode == "bf16") {
    dtype_ = at::kBFloat16;
  } else if (mode == "fp16") {
    dtype_ = at::kHalf;
    scale_ = at::full({1}, kFirstScale, options);
    growth_tracker_ = at::zeros({1}, options.dtype(at::kInt));
  }
  if (scaling() || check_gradients) {
    found_inf_ = at::zeros({1}, options);
    one_ = at::ones({1}, options);
    skipped_ = at::zeros({1}, options.dtype(at::kDouble));
  }
}

void Precision::unscale(const std::vector<at::Tensor>& gradients) {
  found_inf_.zero_();
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, scaling() ? scale_.reciprocal() : one_);
}

void Precision::update() {
  if (checks()) {
    skipped_.add_(found_inf_);
  }
  if (scaling()) {
    at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, kGrowth, kBackoff, kGrowthInterval);
  }
}

std::int64_t Precision::skipped() const { return checks() ? static_cast<std::int64_t>(skipped_.item<double>()) : 0; }

std::string Precision::effective() const {
  const AutocastGuard guard = autocast();
  if (!at::autocast::is_autocast_enabled(device_.type())) {
    return "off";
  }
  return at::autocast::get_autocast_dtype(device_.type()) == at::kHalf ? "fp16" : "bf16";
}

std::vector<at::Tensor> Precision::changing() const {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : {scale_, growth_tracker_, found_inf_, skipped_}) {
    if (tensor.defined()) {
      all.push_back(tensor);
    }
  }
  return all;
}

std::vector<at::Tensor> Precision::state() const {
  return scaling() ? std::vector<at::Tensor>{scale_, growth_tracker_} : std::vector<at::Tensor>{};
}

void Precision::load_state(const std::vector<at::Tensor>& state) {
  if (scaling() && state.size() == 2) {
    scale_.copy_(state[0]);
    growth_tracker_.copy_(state[1]);
  }
}

}  // namespace unidle::train
