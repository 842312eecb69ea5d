// Mixed precision: autocast around forward, and loss scaling for fp16.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace unidle::train {

/// Forward runs in the lower precision while this lives.
class AutocastGuard {
 public:
  /// kFloat: does nothing.
  AutocastGuard(at::DeviceType device, at::ScalarType dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  at::DeviceType device_;
  bool active_;
  bool was_enabled_ = false;
  at::ScalarType was_dtype_ = at::kFloat;
};

/// Mode "off", "bf16" or "fp16"; with `check_gradients` steps with non-finite gradients are skipped in any mode. With
/// fp16 the loss is scaled; the scale lives on the device and changes there, as in torch.amp.GradScaler (growth 2 after
/// 2000 good steps, backoff 0.5, start 65536).
class Precision {
 public:
  Precision(const std::string& mode, at::Device device, bool check_gradients = false);

  AutocastGuard autocast() const { return {device_.type(), dtype_}; }
  bool scaling() const { return scale_.defined(); }
  /// Whether unscale() must be called before each update.
  bool checks() const { return found_inf_.defined(); }
  at::Tensor scale(const at::Tensor& loss) const { return scaling() ? loss * scale_ : loss; }
  /// Divides the gradients by the scale, if any, and sets found_inf() to 1 when any of them is not finite.
  void unscale(const std::vector<at::Tensor>& gradients);
  const at::Tensor& found_inf() const { return found_inf_; }
  /// Call after the optimiser step.
  void update();
  /// Steps skipped since the start. Waits for the device.
  std::int64_t skipped() const;

  /// The mode in which forward ran, read from torch inside the guard.
  std::string effective() const;

  /// All tensors in it that steps change in place.
  std::vector<at::Tensor> changing() const;
  std::vector<at::Tensor> state() const;  // scale, growth tracker; empty without scaling
  void load_state(const std::vector<at::Tensor>& state);

 private:
  at::Device device_;
  at::ScalarType dtype_ = at::kFloat;
  at::Tensor scale_;
  at::Tensor growth_tracker_;
  at::Tensor found_inf_;
  at::Tensor one_;      // the divisor when there is no scaling
  at::Tensor skipped_;  // a count, stored as double
};

}  // namespace unidle::train
