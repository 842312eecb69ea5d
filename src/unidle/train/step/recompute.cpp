#include "unidle/train/step/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "unidle/train/step/precision.h"

namespace unidle::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;
using Body = std::function<at::Tensor(const variable_list&)>;

/// The random generators that a body may use: the host's and the device's.
std::vector<at::Generator> generators_of(at::Device device) {
  std::vector<at::Generator> all = {at::detail::getDefaultCPUGenerator()};
  if (!device.is_cpu()) {
    all.push_back(at::globalContext().defaultGenerator(device));
  }
  return all;
}

std::vector<at::Tensor> random_states(at::Device device) {
  std::vector<at::Tensor> states;
  for (const at::Generator& generator : generators_of(device)) {
    states.push_back(generator.get_state());
  }
  return states;
}

/// Restores the generators to `states` while this lives.
class RandomStateGuard {
 public:
  RandomStateGuard(at::Device device, const std::vector<at::Tensor>& states)
      : device_(device), now_(random_states(device)) {
    set(states);
  }
  ~RandomStateGuard() { set(now_); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  void set(const std::vector<at::Tensor>& states) {
    std::vector<at::Generator> generators = generators_of(device_);
    for (std::size_t i = 0; i < generators.size(); ++i) {
      generators[i].set_state(states[i]);
    }
  }

  at::Device device_;
  std::vector<at::Tensor> now_;
};

/// Carries a std::function in the autograd context.
struct BodyHolder : torch::CustomClassHolder {
  explicit BodyHolder(Body given) : body(std::move(given)) {}
  Body body;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // Variables that the node needs edges to must be arguments of their own type: a list of them.
  static Variable forward(AutogradContext* context, const Body& body, at::TensorList inputs) {
    const at::Device device = inputs.front().device();
    context->save_for_backward(inputs.vec());
    context->saved_data["body"] = c10::IValue::make_capsule(c10::make_intrusive<BodyHolder>(body));
    const bool cast = at::autocast::is_autocast_enabled(device.type());
    context->saved_data["dtype"] =
        static_cast<std::int64_t>(cast ? at::autocast::get_autocast_dtype(device.type()) : at::kFloat);
    context->saved_data["random"] = random_states(device);
    return body(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().requires_grad_(saved.requires_grad()));
    }
    const at::Device device = inputs.front().device();
    const auto holder = context->saved_data["body"].toCapsule();
    at::Tensor output;
    {
      const RandomStateGuard random(device, context->saved_data["random"].toTensorVector());
      const at::AutoGradMode with_grad(true);
      const AutocastGuard autocast(device.type(), static_cast<at::ScalarType>(context->saved_data["dtype"].toInt()));
      output = static_cast<BodyHolder&>(*holder).body(inputs);
    }
    torch::autograd::backward({output}, {gradients[0]});
    variable_list of_inputs = {Variable()};  // no gradient for the body
    for (const at::Tensor& input : inputs) {
      of_inputs.push_back(input.grad());
    }
    return of_inputs;
  }
};

}  // namespace

at::Tensor recompute(const Body& function, const variable_list& inputs) {
  return Recompute::apply(function, at::TensorList(inputs));
}

}  // namespace unidle::train
