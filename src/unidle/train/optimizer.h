// AdamW, fused over all parameters or parameter by parameter.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace unidle::train {

/// Decoupled weight decay (Loshchilov and Hutter 2019) with betas 0.9 and 0.999 and epsilon 1e-8, as torch.optim.AdamW
/// has them. Not thread-safe.
class AdamW {
 public:
  struct Options {
    double weight_decay = 0.01;
    bool fused = false;
  };
  /// `parameters` are updated in place; all of one device and dtype float.
  AdamW(std::vector<at::Tensor> parameters, const Options& options);

  /// One update from the parameters' gradients. When `found_inf` is defined and 1 nothing changes: the fused update
  /// sees that on the device, the other one reads it back.
  void step(double lr, const at::Tensor& found_inf = {});

  bool fused() const { return options_.fused; }
  double weight_decay() const { return options_.weight_decay; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// Step count, first moments, second moments.
  std::vector<at::Tensor> state() const;
  void load_state(const std::vector<at::Tensor>& state);

 private:
  void step_fused(double lr, const at::Tensor& found_inf);
  void step_each(double lr);

  std::vector<at::Tensor> parameters_;
  Options options_;
  at::Tensor steps_;  // one count for all: every parameter gets a gradient in every step
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
};

/// The gradients that are there, in the order of `parameters`.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters);

/// Scales all gradients so that their common 2-norm is at most `limit`; nothing is read back to the host.
void clip_gradients(const std::vector<at::Tensor>& gradients, double limit);

/// Drops the gradients, or fills them with zeros.
void clear_gradients(const std::vector<at::Tensor>& parameters, bool to_none);

/// Learning rate of step `step` (from 0): rises linearly over `warmup` steps to `base`, then stays.
double scheduled_rate(double base, std::int64_t warmup, std::int64_t step);

}  // namespace unidle::train
