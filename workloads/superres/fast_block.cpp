#include "workloads/superres/fast_block.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "workloads/superres/kernels.h"

namespace unidle::workloads::superres {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr float kEpsilon = 1e-5F;

float* data(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* read(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// Splits `count` over the threads, once each.
template <typename Body>
void split(std::int64_t count, const Body& body) {
  const std::int64_t threads = at::get_num_threads();
  at::parallel_for(0, count, (count + threads - 1) / threads, body);
}

/// The same with a private [rows, columns] of zeros for each thread; returns their sum, always in the same order.
template <typename Body>
at::Tensor split_and_sum(std::int64_t count, std::int64_t rows, std::int64_t columns, const Body& body) {
  const at::Tensor partial = at::zeros({at::get_num_threads(), rows, columns});
  float* first = data(partial);
  split(count,
        [&](std::int64_t begin, std::int64_t end) { body(first + at::get_thread_num() * rows * columns, begin, end); });
  return partial.sum(0);
}

Shape shape_of(const at::Tensor& x) { return {x.size(2), x.size(3), x.size(1)}; }
at::Tensor padded_zeros(const at::Tensor& like) {
  return at::zeros({like.size(0), like.size(2) + 2 * kBorder, like.size(3) + 2 * kBorder, like.size(1)});
}
/// [w, 1, 7, 7] -> [49, w]
at::Tensor by_tap(const at::Tensor& depthwise) {
  return depthwise.reshape({depthwise.size(0), kTaps * kTaps}).t().contiguous();
}

struct Forward {
  at::Tensor output;
  at::Tensor padded;      // x with its border
  at::Tensor normalised;  // [pixels, w]
  at::Tensor inverse_deviation;
  at::Tensor activated;  // gelu, [pixels, 4w]
  at::Tensor slope;      // its derivative
};

Forward run_forward(const at::Tensor& x, const BlockWeights& weights, bool for_backward) {
  const Kernels& k = *kernels();
  const Shape shape = shape_of(x);
  const std::int64_t rows = x.size(0) * shape.height;
  const std::int64_t pixels = rows * shape.width;
  Forward f;
  f.padded = padded_zeros(x);
  f.normalised = at::empty({pixels, shape.channels});
  f.inverse_deviation = at::empty({pixels});
  const at::Tensor taps = by_tap(weights.depthwise);
  const float* bias = read(weights.depthwise_bias);
  split(rows, [&](std::int64_t begin, std::int64_t end) { k.pad(shape, read(x), data(f.padded), begin, end); });
  split(rows, [&](std::int64_t begin, std::int64_t end) {
    k.convolve_normalise(shape, read(f.padded), read(taps), bias, kEpsilon, data(f.normalised),
                         data(f.inverse_deviation), begin, end);
  });

  const at::Tensor expand = weights.expand * weights.norm;
  const at::Tensor expand_bias = at::addmv(weights.expand_bias, weights.expand, weights.norm_bias);
  f.activated = at::mm(f.normalised, expand.t());
  f.slope = for_backward ? at::empty_like(f.activated) : at::Tensor();
  split(pixels, [&](std::int64_t begin, std::int64_t end) {
    k.gelu(4 * shape.channels, read(expand_bias), data(f.activated), for_backward ? data(f.slope) : nullptr, begin,
           end);
  });

  const at::Tensor project_bias = weights.project_bias * weights.gamma;
  const at::Tensor rows_out = at::mm(f.activated, (weights.project * weights.gamma).t());
  split(pixels, [&](std::int64_t begin, std::int64_t end) {
    k.add(shape.channels, read(x), read(project_bias), data(rows_out), begin, end);
  });
  f.output = rows_out.view({x.size(0), shape.height, shape.width, shape.channels}).permute({0, 3, 1, 2});
  return f;
}

class FastBlock : public torch::autograd::Function<FastBlock> {
 public:
  // Torch hands over each tensor by itself.
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& depthwise,
                          const Variable& depthwise_bias, const Variable& norm, const Variable& norm_bias,
                          const Variable& expand, const Variable& expand_bias, const Variable& project,
                          const Variable& project_bias, const Variable& gamma) {
    const BlockWeights weights = {depthwise,   depthwise_bias, norm,         norm_bias, expand,
                                  expand_bias, project,        project_bias, gamma};
    Forward f = run_forward(x, weights, true);
    context->save_for_backward({f.padded, f.normalised, f.inverse_deviation, f.activated, f.slope, depthwise, norm,
                                norm_bias, expand, project, project_bias, gamma});
    return f.output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &padded = saved[0], &normalised = saved[1], &inverse_deviation = saved[2], &activated = saved[3],
                     &slope = saved[4], &depthwise = saved[5], &norm = saved[6], &norm_bias = saved[7],
                     &expand = saved[8], &project = saved[9], &project_bias = saved[10], &gamma = saved[11];
    const Kernels& k = *kernels();
    const at::Tensor out_gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const Shape shape = shape_of(out_gradient);
    const std::int64_t rows = out_gradient.size(0) * shape.height;
    const std::int64_t pixels = rows * shape.width;
    const std::int64_t hidden = 4 * shape.channels;
    const at::Tensor out_rows = out_gradient.permute({0, 2, 3, 1}).view({pixels, shape.channels});

    // Project, with gamma folded in.
    const at::Tensor scaled_project_bias_gradient = sums_of(k, out_rows);
    const at::Tensor scaled_project_gradient = at::mm(out_rows.t(), activated);
    const at::Tensor hidden_gradient = at::mm(out_rows, project * gamma);
    const at::Tensor expand_bias_gradient =
        split_and_sum(pixels, 1, hidden, [&](float* sums, std::int64_t begin, std::int64_t end) {
          k.gelu_backward(hidden, read(slope), data(hidden_gradient), sums, begin, end);
        }).view({hidden});

    // Expand, with the affine part of LayerNorm folded in.
    const at::Tensor folded_expand_gradient = at::mm(hidden_gradient.t(), normalised);
    const at::Tensor normalised_gradient = at::mm(hidden_gradient, expand * norm);

    const at::Tensor padded_gradient = padded_zeros(out_gradient);
    split(rows, [&](std::int64_t begin, std::int64_t end) {
      k.normalise_backward(shape, read(normalised_gradient), read(normalised), read(inverse_deviation),
                           data(padded_gradient), begin, end);
    });
    const at::Tensor tap_gradient =
        split_and_sum(rows, kTaps * kTaps + 1, shape.channels, [&](float* sums, std::int64_t begin, std::int64_t end) {
          k.weight_gradient(shape, read(padded), read(padded_gradient), sums, begin, end);
        });
    // The gradient of a convolution is the convolution with the kernel turned round.
    const at::Tensor turned = by_tap(depthwise.flip({2, 3}));
    const at::Tensor in_gradient = at::empty_like(out_gradient);
    split(rows, [&](std::int64_t begin, std::int64_t end) {
      k.convolve_add(shape, read(padded_gradient), read(turned), read(out_gradient), data(in_gradient), begin, end);
    });

    return {
        in_gradient,
        tap_gradient.narrow(0, 0, kTaps * kTaps).t().reshape(depthwise.sizes()),
        tap_gradient[kTaps * kTaps],
        (folded_expand_gradient * expand).sum(0),
        at::mv(expand.t(), expand_bias_gradient),
        at::addr(folded_expand_gradient * norm, expand_bias_gradient, norm_bias),
        expand_bias_gradient,
        scaled_project_gradient * gamma,
        scaled_project_bias_gradient * gamma,
        ((scaled_project_gradient * project).sum() + at::dot(scaled_project_bias_gradient, project_bias)).view({1})};
  }

 private:
  static at::Tensor sums_of(const Kernels& k, const at::Tensor& matrix) {
    return split_and_sum(matrix.size(0), 1, matrix.size(1),
                         [&](float* sums, std::int64_t begin, std::int64_t end) {
                           k.column_sums(matrix.size(1), read(matrix), sums, begin, end);
                         })
        .view({matrix.size(1)});
  }
};

}  // namespace

bool fast_block_fits(const at::Tensor& x, const BlockWeights& weights) {
  return kernels() != nullptr && x.is_cpu() && x.scalar_type() == at::kFloat && weights.gamma.is_cpu() &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast) && x.size(1) % kLanes == 0 &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor fast_block(const at::Tensor& x, const BlockWeights& w) {
  if (!at::GradMode::is_enabled()) {
    return run_forward(x, w, false).output;
  }
  return FastBlock::apply(x, w.depthwise, w.depthwise_bias, w.norm, w.norm_bias, w.expand, w.expand_bias, w.project,
                          w.project_bias, w.gamma);
}

}  // namespace unidle::workloads::superres
