// Updates of a model's parameters, fused over all of them or parameter by parameter.
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

  /// The learning rate of the updates from now on.
  void set_rate(double rate);
  /// Keeps the rate in the device's memory, where a captured update reads it anew in each replay. Needs fused().
  void keep_rate_on_device();
  /// One update from the gradients that are there. When `found_inf` is defined and 1 nothing changes: the fused update
  /// sees that on the device, the other one reads it back.
  void step(const at::Tensor& found_inf = {});

  /// As the configuration spells it.
  virtual std::string_view name() const = 0;
  bool fused() const { return fused_; }
  double weight_decay() const { return weight_decay_; }
  /// Those that learn, in the order of the model.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// All that it remembers, in a fixed order.
  virtual std::vector<at::Tensor> state() const = 0;
  /// Throws c10::Error for the state of another model or another update rule.
  void load_state(const std::vector<at::Tensor>& state);

 protected:
  struct Options {
    double weight_decay = 0;
    bool fused = false;
  };
  /// `parameters` are updated in place; all of one device and dtype float. Those that do not learn are left out.
  Optimizer(std::vector<at::Tensor> parameters, Options options);

  /// Parameters with their gradients and their places in parameters(). Vectors keep their memory from step to step.
  struct Part {
    std::vector<std::size_t> places;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    void clear();
    /// The same parameters' own tensors out of `all`, which has one a parameter: `all` itself where every one has a
    /// gradient, else `room`, filled.
    const std::vector<at::Tensor>& of(const std::vector<at::Tensor>& all, std::vector<at::Tensor>& room) const;
  };
  virtual void step_fused(const Part& part, const at::Tensor& found_inf) = 0;
  virtual void step_each(const Part& part) = 0;

  double rate() const { return rate_; }
  /// Undefined unless it is kept there.
  const at::Tensor& rate_on_device() const { return rate_on_device_; }

  std::vector<at::Tensor> parameters_;

 private:
  Part part_;
  double rate_ = 0;
  at::Tensor rate_on_device_;
  double weight_decay_;
  bool fused_;
};

/// Decoupled weight decay (Loshchilov and Hutter 2019) with betas 0.9 and 0.999 and epsilon 1e-8, as torch.optim.AdamW
/// has them. Steps are counted for all parameters together: one whose first gradient comes late is corrected as if it
/// had had gradients of zero until then, where torch.optim.AdamW begins to count.
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

  at::Tensor steps_;  // one count for all
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
  std::vector<at::Tensor> counts_;  // steps_, once a parameter
  std::vector<at::Tensor> chosen_means_;
  std::vector<at::Tensor> chosen_squares_;
};

/// Gradient descent with momentum (no dampening, no Nesterov) and weight decay added to the gradient, as
/// torch.optim.SGD has them.
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

/// What optimizer.* asks for.
std::unique_ptr<Optimizer> make_optimizer(const Config& config, std::vector<at::Tensor> parameters);

/// The gradients that are there, in the order of `parameters`.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters);

/// Scales all gradients so that their common 2-norm is at most `limit`; nothing is read back to the host.
void clip_gradients(const std::vector<at::Tensor>& gradients, double limit);

/// Drops the gradients, or fills them with zeros.
void clear_gradients(const std::vector<at::Tensor>& parameters, bool to_none);

}  // namespace unidle::train
