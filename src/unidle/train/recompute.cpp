#include "unidle/train/recompute.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "unidle/train/precision.h"

namespace unidle::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;
using Body = std::function<at::Tensor(const at::Tensor&)>;

/// Lets a std::function travel in the context.
struct BodyHolder : torch::CustomClassHolder {
  explicit BodyHolder(Body given) : body(std::move(given)) {}
  Body body;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input, const Body& body) {
    context->save_for_backward({input});
    context->saved_data["body"] = c10::IValue::make_capsule(c10::make_intrusive<BodyHolder>(body));
    const bool cast = at::autocast::is_autocast_enabled(input.device().type());
    context->saved_data["dtype"] =
        static_cast<std::int64_t>(cast ? at::autocast::get_autocast_dtype(input.device().type()) : at::kFloat);
    return body(input);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_(true);
    const auto holder = context->saved_data["body"].toCapsule();
    at::Tensor output;
    {
      const at::AutoGradMode with_grad(true);
      const AutocastGuard autocast(input.device().type(),
                                   static_cast<at::ScalarType>(context->saved_data["dtype"].toInt()));
      output = static_cast<BodyHolder&>(*holder).body(input);
    }
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), Variable()};
  }
};

}  // namespace

at::Tensor recompute(const Body& function, const at::Tensor& input) { return Recompute::apply(input, function); }

}  // namespace unidle::train
