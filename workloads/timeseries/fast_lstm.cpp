#include "workloads/timeseries/fast_lstm.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "workloads/common/products.h"
#include "workloads/timeseries/lstm_kernels.h"

namespace unidle::workloads::timeseries {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

float* writable(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* values_in(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// [length, n, columns] -> [length * n, columns].
at::Tensor flat(const at::Tensor& all) { return all.view({all.size(0) * all.size(1), all.size(2)}); }

/// Each thread gets one run of samples.
template <typename Body>
void split_samples(std::int64_t samples, const Body& body) {
  const std::int64_t threads = at::get_num_threads();
  at::parallel_for(0, samples, (samples + threads - 1) / threads, body);
}

constexpr std::int64_t kPanel = 16;  // columns of weights that lie together: [columns / kPanel, depth, kPanel]

/// c [rows, columns] = a * b, or c += a * b, where b [depth, columns] lies in panels, which a BLAS would make anew for
/// each product.
void multiply_panels(void (*multiply)(const Product&), const float* a, const at::Tensor& panels, float* c,
                     std::int64_t rows) {
  const std::int64_t depth = panels.size(1);
  const std::int64_t columns = panels.size(0) * kPanel;
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    multiply({a, depth, 1, values_in(panels) + column * depth, kPanel, c + column, columns, rows, depth, kPanel});
  }
}

/// What the forward pass leaves for the backward pass; all [length, n, ...].
struct Passed {
  at::Tensor gates;  // after their activation
  at::Tensor cells;
  at::Tensor bent;
  at::Tensor outputs;
};

Passed through_days(const at::Tensor& days, const LstmWeights& weights) {
  const std::int64_t length = days.size(0);
  const std::int64_t samples = days.size(1);
  const std::int64_t width = weights.recurrent.size(1);
  Passed p = {at::empty({length, samples, 4 * width}), at::empty({length, samples, width}),
              at::empty({length, samples, width}), at::empty({length, samples, width})};
  at::Tensor gates = flat(p.gates);
  at::addmm_out(gates, weights.input_bias + weights.recurrent_bias, flat(days), weights.input.t());
  const at::Tensor panels = weights.recurrent.view({-1, kPanel, width}).permute({0, 2, 1}).contiguous();
  const LstmKernels& k = *lstm_kernels();

  split_samples(samples, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    for (std::int64_t day = 0; day < length; ++day) {
      const std::int64_t at = (day * samples + begin) * width;
      const std::int64_t before = at - samples * width;
      float* today = writable(p.gates) + 4 * at;
      if (day > 0) {
        multiply_panels(products()->multiply_add, writable(p.outputs) + before, panels, today, rows);
      }
      k.forward({rows, width, today, day > 0 ? writable(p.cells) + before : nullptr, writable(p.cells) + at,
                 writable(p.bent) + at, writable(p.outputs) + at});
    }
  });
  return p;
}

/// The gradient of the gates before their activation, [length, n, 4w].
at::Tensor back_through_days(const at::Tensor& gradient, const Passed& p, const at::Tensor& recurrent) {
  const std::int64_t length = gradient.size(0);
  const std::int64_t samples = gradient.size(1);
  const std::int64_t width = recurrent.size(1);
  const at::Tensor gate_gradient = at::empty_like(p.gates);
  const at::Tensor panels = recurrent.view({4 * width, -1, kPanel}).permute({1, 0, 2}).contiguous();
  const LstmKernels& k = *lstm_kernels();

  split_samples(samples, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    const at::Tensor of_output = at::empty({rows, width});  // of the day before, by way of its gates
    const at::Tensor of_cells = at::zeros({rows, width});
    for (std::int64_t day = length - 1; day >= 0; --day) {
      const std::int64_t at = (day * samples + begin) * width;
      float* today = writable(gate_gradient) + 4 * at;
      k.backward({rows, width, values_in(p.gates) + 4 * at,
                  day > 0 ? values_in(p.cells) + at - samples * width : nullptr, values_in(p.bent) + at,
                  values_in(gradient) + at, day + 1 < length ? values_in(of_output) : nullptr, writable(of_cells),
                  today});
      if (day > 0) {
        multiply_panels(products()->multiply, today, panels, writable(of_output), rows);
      }
    }
  });
  return gate_gradient;
}

class FastLstm : public torch::autograd::Function<FastLstm> {
 public:
  // Torch hands over each tensor by itself.
  static Variable forward(AutogradContext* context, const Variable& days, const Variable& input,
                          const Variable& recurrent, const Variable& input_bias, const Variable& recurrent_bias) {
    const Passed p = through_days(days, {input, recurrent, input_bias, recurrent_bias});
    context->save_for_backward({days, input, recurrent, p.gates, p.cells, p.bent, p.outputs});
    return p.outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &days = saved[0], &input = saved[1], &recurrent = saved[2];
    const Passed p = {saved[3], saved[4], saved[5], saved[6]};
    const std::int64_t length = days.size(0);
    const at::Tensor of_gates = back_through_days(gradients[0].contiguous(), p, recurrent);
    const at::Tensor rows = flat(of_gates);
    const at::Tensor of_bias = rows.sum(0);
    return {context->needs_input_grad(0) ? rows.mm(input).view(days.sizes()) : at::Tensor(), rows.t().mm(flat(days)),
            flat(of_gates.narrow(0, 1, length - 1)).t().mm(flat(p.outputs.narrow(0, 0, length - 1))), of_bias, of_bias};
  }
};

}  // namespace

bool fast_lstm_fits(const at::Tensor& days, const LstmWeights& weights) {
  return lstm_kernels() != nullptr && products() != nullptr && days.is_cpu() && days.scalar_type() == at::kFloat &&
         days.numel() > 0 && weights.recurrent.is_cpu() && weights.recurrent.size(1) % kPanel == 0 &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor fast_lstm(const at::Tensor& days, const LstmWeights& w) {
  const at::Tensor rows = days.contiguous();
  if (at::GradMode::is_enabled()) {
    return FastLstm::apply(rows, w.input, w.recurrent, w.input_bias, w.recurrent_bias);
  }
  constexpr std::int64_t kSamples = 128;  // as little memory for a validation's batch as for a step's
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : rows.split(kSamples, 1)) {
    parts.push_back(through_days(part.contiguous(), w).outputs);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

}  // namespace unidle::workloads::timeseries
