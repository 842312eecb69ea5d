// Mixed precision: autocast around forward, and loss scaling where fp16 needs it.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace unidle::train {

/// While it lives, forward runs in the lower precision.
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

/// "off", "bf16" or "fp16". With fp16 the loss is scaled; the scale lives on the device and grows and shrinks there,
/// as in torch.amp.GradScaler (growth 2 after 2000 good steps, backoff 0.5, start 65536).
class Precision {
 public:
  Precision(const std::string& mode, at::Device device);

  AutocastGuard autocast() const { return {device_.type(), dtype_}; }
  bool scaling() const { return scale_.defined(); }
  at::Tensor scale(const at::Tensor& loss) const { return scaling() ? loss * scale_ : loss; }
  /// Divides the gradients by the scale and notes whether any is not finite; then found_inf() is 1.
  void unscale(const std::vector<at::Tensor>& gradients);
  const at::Tensor& found_inf() const { return found_inf_; }
  /// After the optimiser step.
  void update();

  /// The mode that forward ran in, asked of torch inside the guard.
  std::string effective() const;

  std::vector<at::Tensor> state() const;  // scale, growth tracker; empty without scaling
  void load_state(const std::vector<at::Tensor>& state);

 private:
  at::Device device_;
  at::ScalarType dtype_ = at::kFloat;
  at::Tensor scale_;
  at::Tensor growth_tracker_;
  at::Tensor found_inf_;
};

}  // namespace unidle::train
