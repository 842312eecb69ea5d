#include "workloads/timeseries/fast_lstm.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "unidle/train/fuse/traced_loss.h"
#include "workloads/common/products.h"
#include "workloads/timeseries/lstm_kernels.h"

namespace unidle::workloads::timeseries {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

float* writable(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* values_in(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// Calls `body` with the number and the samples of each part, one part per thread.
template <typename Body>
void split_samples(std::int64_t samples, std::int64_t parts, const Body& body) {
  at::parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part) {
      body(part, samples * part / parts, samples * (part + 1) / parts);
    }
  });
}

std::int64_t parts_of(std::int64_t samples) { return std::min<std::int64_t>(samples, at::get_num_threads()); }

constexpr std::int64_t kPanel = 16;  // adjacent columns of a packed factor

/// The second factor of products, [columns / kPanel, depth, kPanel], padded with zeros: in the order in which a product
/// reads it. A BLAS would pack it again for each product.
struct Panels {
  at::Tensor values;
  std::int64_t columns;
};

Panels panels_of(const at::Tensor& factor) {
  const std::int64_t columns = factor.size(1);
  const std::int64_t rest = (kPanel - columns % kPanel) % kPanel;
  const at::Tensor whole = rest > 0 ? at::constant_pad_nd(factor, {0, rest}) : factor;
  return {whole.unflatten(1, {-1, kPanel}).permute({1, 0, 2}).contiguous(), columns};
}

/// c [rows, columns] = a * b, or c += a * b. a_row is the row stride of a.
void multiply_panels(void (*multiply)(const Product&), const float* a, std::int64_t a_row, const Panels& b, float* c,
                     std::int64_t rows) {
  const std::int64_t depth = b.values.size(1);
  for (std::int64_t column = 0; column < b.columns; column += kPanel) {
    multiply({a, a_row, 1, values_in(b.values) + column * depth, kPanel, c + column, b.columns, rows, depth,
              std::min(kPanel, b.columns - column)});
  }
}

/// `days` [length, n, f], with rows padded to whole vectors, as products read them.
at::Tensor padded(const at::Tensor& days) {
  const std::int64_t rest = (kLanes - days.size(2) % kLanes) % kLanes;
  return rest > 0 ? at::constant_pad_nd(days, {0, rest}) : days.contiguous();
}

/// The results of the forward pass for the backward pass; all [length, n, ...].
struct Passed {
  at::Tensor days;   // padded
  at::Tensor gates;  // after activation
  at::Tensor cells;
  at::Tensor tanh_cells;
  at::Tensor outputs;
};

Passed through_days(const at::Tensor& days, const LstmWeights& weights) {
  const std::int64_t length = days.size(0);
  const std::int64_t samples = days.size(1);
  const std::int64_t width = weights.recurrent.size(1);
  Passed p = {padded(days), at::empty({length, samples, 4 * width}), at::empty({length, samples, width}),
              at::empty({length, samples, width}), at::empty({length, samples, width})};
  const std::int64_t day_row = p.days.size(2);
  const Panels input = panels_of(weights.input.t());
  const Panels recurrent = panels_of(weights.recurrent.t());
  const at::Tensor bias = weights.input_bias + weights.recurrent_bias;

  split_samples(samples, parts_of(samples), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    for (std::int64_t day = 0; day < length; ++day) {
      const std::int64_t row = day * samples + begin;
      const std::int64_t at = row * width;
      const std::int64_t before = at - samples * width;
      float* today = writable(p.gates) + 4 * at;
      // Depth of the first product: all columns of `input`, without the padding of the day's vectors.
      multiply_panels(products()->multiply, values_in(p.days) + row * day_row, day_row, input, today, rows);
      if (day > 0) {
        multiply_panels(products()->multiply_add, values_in(p.outputs) + before, width, recurrent, today, rows);
      }
      lstm_kernels()->forward({rows, width, values_in(bias), today, day > 0 ? values_in(p.cells) + before : nullptr,
                               writable(p.cells) + at, writable(p.tanh_cells) + at, writable(p.outputs) + at});
    }
  });
  return p;
}

/// Gradients of a layer's weights; both biases have the same gradient.
struct Gradients {
  at::Tensor input;
  at::Tensor recurrent;
  at::Tensor bias;
};

/// The backward pass of samples [begin, end): the gradients of the weights from these samples, and of the days' rows.
class BackwardPass {
 public:
  BackwardPass(const Passed& passed, const at::Tensor& from_above, const LstmWeights& weights, bool to_days)
      : p_(passed),
        from_above_(from_above),
        input_(to_days ? panels_of(weights.input) : Panels{}),
        recurrent_(panels_of(weights.recurrent)),
        features_(weights.input.size(1)),
        width_(weights.recurrent.size(1)),
        of_days_(to_days ? at::empty({days(), samples(), features_}) : at::Tensor()) {}

  Gradients operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t rows = end - begin;
    // Row strides are not powers of two: a column would map to only a few lines of the cache.
    const std::int64_t gates_row = 4 * width_ + kPanel;
    const Gradients sums = {at::zeros({4 * width_, features_}), at::zeros({4 * width_, width_}),
                            at::zeros({4 * width_})};
    const at::Tensor gates = at::empty({rows, gates_row});   // gradients before activation, of one day
    const at::Tensor of_output = at::zeros({rows, width_});  // of the day before, through its gates
    const at::Tensor of_cells = at::zeros({rows, width_});
    float* today = writable(gates);
    for (std::int64_t day = days() - 1; day >= 0; --day) {
      const std::int64_t row = day * samples() + begin;
      const std::int64_t at = row * width_;
      const std::int64_t before = at - samples() * width_;
      lstm_kernels()->backward({rows, width_, values_in(p_.gates) + 4 * at,
                                day > 0 ? values_in(p_.cells) + before : nullptr, values_in(p_.tanh_cells) + at,
                                values_in(from_above_) + at, values_in(of_output), writable(of_cells), gates_row, today,
                                writable(sums.bias)});
      const std::int64_t day_row = p_.days.size(2);
      products()->multiply_add({today, 1, gates_row, values_in(p_.days) + row * day_row, day_row, writable(sums.input),
                                features_, 4 * width_, rows, features_});
      if (of_days_.defined()) {
        multiply_panels(products()->multiply, today, gates_row, input_, writable(of_days_) + row * features_, rows);
      }
      if (day > 0) {
        products()->multiply_add({today, 1, gates_row, values_in(p_.outputs) + before, width_, writable(sums.recurrent),
                                  width_, 4 * width_, rows, width_});
        multiply_panels(products()->multiply, today, gates_row, recurrent_, writable(of_output), rows);
      }
    }
    return sums;
  }

  std::int64_t samples() const { return p_.days.size(1); }
  const at::Tensor& of_days() const { return of_days_; }

 private:
  std::int64_t days() const { return p_.days.size(0); }

  const Passed& p_;
  const at::Tensor& from_above_;
  Panels input_;
  Panels recurrent_;
  std::int64_t features_;
  std::int64_t width_;
  at::Tensor of_days_;  // undefined when not requested
};

Gradients learned(const BackwardPass& way_back) {
  std::vector<Gradients> parts(static_cast<std::size_t>(parts_of(way_back.samples())));
  split_samples(way_back.samples(), static_cast<std::int64_t>(parts.size()),
                [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                  parts[static_cast<std::size_t>(part)] = way_back(begin, end);
                });
  for (std::size_t part = 1; part < parts.size(); ++part) {  // fixed order: deterministic sums
    parts[0].input += parts[part].input;
    parts[0].recurrent += parts[part].recurrent;
    parts[0].bias += parts[part].bias;
  }
  return parts[0];
}

class FastLstm : public torch::autograd::Function<FastLstm> {
 public:
  // Autograd functions take each tensor as a separate argument.
  static Variable forward(AutogradContext* context, const Variable& days, const Variable& input,
                          const Variable& recurrent, const Variable& input_bias, const Variable& recurrent_bias) {
    const Passed p = through_days(days, {input, recurrent, input_bias, recurrent_bias});
    context->save_for_backward({input, recurrent, p.days, p.gates, p.cells, p.tanh_cells, p.outputs});
    return p.outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Passed p = {saved[2], saved[3], saved[4], saved[5], saved[6]};
    const at::Tensor from_above = gradients[0].contiguous();
    const BackwardPass way_back(p, from_above, {saved[0], saved[1], {}, {}}, context->needs_input_grad(0));
    const Gradients of = learned(way_back);
    return {way_back.of_days(), of.input, of.recurrent, of.bias, of.bias};
  }
};

}  // namespace

bool fast_lstm_fits(const at::Tensor& days, const LstmWeights& weights) {
  return lstm_kernels() != nullptr && products() != nullptr && days.is_cpu() && days.scalar_type() == at::kFloat &&
         days.numel() > 0 && weights.recurrent.is_cpu() && weights.recurrent.size(1) % kPanel == 0 &&
         !at::autocast::is_autocast_enabled(at::kCPU) && !train::tracing_a_loss();
}

at::Tensor fast_lstm(const at::Tensor& days, const LstmWeights& w) {
  if (at::GradMode::is_enabled()) {
    return FastLstm::apply(days, w.input, w.recurrent, w.input_bias, w.recurrent_bias);
  }
  constexpr std::int64_t kSamples = 128;  // so that validation uses as little memory as a step
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : days.split(kSamples, 1)) {
    parts.push_back(through_days(part, w).outputs);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

}  // namespace unidle::workloads::timeseries
