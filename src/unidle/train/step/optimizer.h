// Updates a model's parameters, fused over all of them or one by one.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string_view>
#include <vector>

namespace unidle::train {

class Config;

/// One update rule with its state. Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Sets the learning rate of the following updates.
  void set_rate(double rate);
  /// Keeps the rate in device memory, so that each replay of a captured update reads it. Requires fused().
  void keep_rate_on_device();
  /// One update from the current gradients. When `found_inf` is defined and 1 nothing changes: the fused update checks
  /// it on the device, the other one reads it back.
  void step(const at::Tensor& found_inf = {});

  /// As spelled in the configuration.
  virtual std::string_view name() const = 0;
  bool fused() const { return fused_; }
  double weight_decay() const { return weight_decay_; }
  /// Those that require gradients, in the order of the model.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// The whole state, in a fixed order.
  virtual std::vector<at::Tensor> state() const = 0;
  /// Throws c10::Error for the state of another model or another update rule.
  void load_state(const std::vector<at::Tensor>& state);

 protected:
  struct Options {
    double weight_decay = 0;
    bool fused = false;
  };
  /// `parameters` are updated in place; all are float and on one device. Those without gradients are left out.
  Optimizer(std::vector<at::Tensor> parameters, Options options);

  /// Parameters that have a gradient, with their indices in parameters(). The vectors' memory is reused in every step.
  struct Part {
    std::vector<std::size_t> places;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    void clear();
    /// The entries of `all`, which has one per parameter, for the same parameters: `all` itself when every parameter
    /// has a gradient, otherwise `room`, filled.
    const std::vector<at::Tensor>& of(const std::vector<at::Tensor>& all, std::vector<at::Tensor>& room) const;
  };
  virtual void step_fused(const Part& part, const at::Tensor& found_inf) = 0;
  virtual void step_each(const Part& part) = 0;

  double rate() const { return rate_; }
  /// Undefined unless keep_rate_on_device() was called.
  const at::Tensor& rate_on_device() const { return rate_on_device_; }

  std::vector<at::Tensor> parameters_;

 private:
  Part part_;
  double rate_ = 0;
  at::Tensor rate_on_device_;
  double weight_decay_;
  bool fused_;
};

/// Decoupled weight decay (Loshchilov and Hutter 2019) with betas 0.9 and 0.999 and epsilon 1e-8, as in
/// torch.optim.AdamW. Steps are counted for all parameters together: a parameter whose first gradient comes late is
/// corrected as if its gradients had been zero until then; torch.optim.AdamW starts counting there.
class AdamW final : public Optimizer {
 public:
  struct Settings {
    double weight_decay = 0.01;
    bool fused = false;
  };
  AdamW(std::vector<at::Tensor> parameters, const Settings& settings);
  std::string_view name() const override { return "adamw"; }
  /// Step count, first moments, second moments.
  std::vector<at::Tensor> state() const override;

 private:
  void step_fused(const Part& part, const at::Tensor& found_inf) override;
  void step_each(const Part& part) override;

  at::Tensor steps_;  // one count for all parameters
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
  std::vector<at::Tensor> counts_;  // steps_, once per parameter
  std::vector<at::Tensor> chosen_means_;
  std::vector<at::Tensor> chosen_squares_;
};

/// Gradient descent with momentum (no dampening, no Nesterov) and weight decay added to the gradient, as in
/// torch.optim.SGD.
class Sgd final : public Optimizer {
 public:
  struct Settings {
    double momentum = 0.9;
    double weight_decay = 0;
    bool fused = false;
  };
  Sgd(std::vector<at::Tensor> parameters, const Settings& settings);
  std::string_view name() const override { return "sgd"; }
  double momentum() const { return momentum_; }
  /// Velocities.
  std::vector<at::Tensor> state() const override { return velocities_; }

 private:
  void step_fused(const Part& part, const at::Tensor& found_inf) override;
  void step_each(const Part& part) override;

  double momentum_;
  std::vector<at::Tensor> velocities_;
  std::vector<at::Tensor> chosen_velocities_;
};

/// Creates the optimizer that the configuration selects.
std::unique_ptr<Optimizer> make_optimizer(const Config& config, std::vector<at::Tensor> parameters);

/// The gradients that exist, in the order of `parameters`.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters);

/// Scales all gradients so that their common 2-norm is at most `limit`; nothing is read back to the host.
void clip_gradients(const std::vector<at::Tensor>& gradients, double limit);

/// Drops the gradients, or fills them with zeros.
void clear_gradients(const std::vector<at::Tensor>& parameters, bool to_none);

}  // namespace unidle::train
