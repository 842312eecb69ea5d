#include "workloads/superres/fast_block.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "unidle/train/fuse/traced_loss.h"
#include "workloads/superres/kernels.h"

namespace unidle::workloads::superres {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr float kEpsilon = 1e-5F;

float* data(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* read(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// Splits `count` over the threads, one part each.
template <typename Body>
void split(std::int64_t count, const Body& body) {
  const std::int64_t threads = at::get_num_threads();
  at::parallel_for(0, count, (count + threads - 1) / threads, body);
}

/// The same, in pieces whose pixels stay in the core's cache between operations.
template <typename Body>
void split_into_chunks(std::int64_t rows, std::int64_t chunk, const Body& body) {
  split(rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += chunk) {
      body(first, std::min(first + chunk, end));
    }
  });
}

std::int64_t chunk_rows(const Shape& shape) {
  constexpr std::int64_t kPixels = 64;
  return std::max<std::int64_t>(1, kPixels / shape.width);
}

/// One [rows, columns] matrix per thread.
class PerThread {
 public:
  PerThread(std::int64_t rows, std::int64_t columns, bool zeros)
      : all_(zeros ? at::zeros({at::get_num_threads(), rows, columns})
                   : at::empty({at::get_num_threads(), rows, columns})),
        size_(rows * columns) {}

  /// The calling thread's.
  float* mine() const { return data(all_) + at::get_thread_num() * size_; }
  /// Fixed order: deterministic.
  at::Tensor sum() const { return all_.sum(0); }

 private:
  at::Tensor all_;
  std::int64_t size_;
};

Shape shape_of(const at::Tensor& x) { return {x.size(2), x.size(3), x.size(1)}; }
at::Tensor padded_zeros(const at::Tensor& like) {
  return at::zeros({like.size(0), like.size(2) + 2 * kBorder, like.size(3) + 2 * kBorder, like.size(1)});
}
/// [w, 1, 7, 7] -> [49, w]
at::Tensor by_tap(const at::Tensor& depthwise) {
  return depthwise.reshape({depthwise.size(0), kTaps * kTaps}).t().contiguous();
}

/// The weights in the form that the passes use: LayerNorm's affine part is folded into expand, gamma into project.
struct Folded {
  at::Tensor expand;   // [4w, w]
  at::Tensor project;  // [w, 4w]
};
Folded fold(const at::Tensor& expand, const at::Tensor& norm, const at::Tensor& project, const at::Tensor& gamma) {
  return {expand * norm, project * gamma};
}

struct Forward {
  at::Tensor output;
  at::Tensor padded;      // x with its border
  at::Tensor normalised;  // [pixels, w]
  at::Tensor inverse_deviation;
  at::Tensor activated;  // gelu, [pixels, 4w]; this and the next only for a backward pass
  at::Tensor slope;      // its derivative
};

Forward allocate_forward(const at::Tensor& x, const Shape& shape, bool for_backward) {
  const std::int64_t pixels = x.size(0) * shape.height * shape.width;
  Forward f;
  f.output = at::empty_like(x);
  f.padded = padded_zeros(x);
  f.normalised = at::empty({pixels, shape.channels});
  f.inverse_deviation = at::empty({pixels});
  if (for_backward) {
    f.activated = at::empty({pixels, 4 * shape.channels});
    f.slope = at::empty_like(f.activated);
  }
  return f;
}

Forward run_forward(const at::Tensor& x, const BlockWeights& weights, bool for_backward) {
  const Kernels& k = *kernels();
  const Products& p = *products();
  const Shape shape = shape_of(x);
  const std::int64_t width = shape.channels;
  const std::int64_t hidden = 4 * width;
  const std::int64_t rows = x.size(0) * shape.height;
  Forward f = allocate_forward(x, shape, for_backward);
  const Folded folded = fold(weights.expand, weights.norm, weights.project, weights.gamma);
  const at::Tensor taps = by_tap(weights.depthwise);
  const at::Tensor expand = folded.expand.t().contiguous();
  const at::Tensor expand_bias = at::addmv(weights.expand_bias, weights.expand, weights.norm_bias);
  const at::Tensor project = folded.project.t().contiguous();
  const at::Tensor project_bias = weights.project_bias * weights.gamma;
  const std::int64_t chunk = chunk_rows(shape);
  const PerThread scratch(for_backward ? 0 : chunk * shape.width, hidden, false);

  split(rows, [&](std::int64_t begin, std::int64_t end) { k.pad(shape, read(x), data(f.padded), begin, end); });
  split_into_chunks(rows, chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * shape.width;
    const std::int64_t pixels = (end - begin) * shape.width;
    const float* normalised = read(f.normalised) + first * width;
    float* activated = for_backward ? data(f.activated) + first * hidden : scratch.mine();
    float* slope = for_backward ? data(f.slope) + first * hidden : nullptr;
    float* out = data(f.output) + first * width;
    k.convolve_normalise(shape, read(f.padded), read(taps), read(weights.depthwise_bias), kEpsilon, data(f.normalised),
                         data(f.inverse_deviation), begin, end);
    p.multiply({normalised, width, 1, read(expand), hidden, activated, hidden, pixels, width, hidden});
    k.gelu(hidden, read(expand_bias), activated, slope, 0, pixels);
    p.multiply({activated, hidden, 1, read(project), width, out, width, pixels, hidden, width});
    k.add(width, read(x) + first * width, read(project_bias), out, 0, pixels);
  });
  return f;
}

/// Gradients of the folded weights and their inputs.
struct Backward {
  at::Tensor project_bias;
  at::Tensor project;  // [w, 4w]
  at::Tensor expand_bias;
  at::Tensor expand;  // [4w, w]
  at::Tensor padded;  // of the convolution's output, with a border
};

Backward back_to_convolution(const at::Tensor& out_gradient, const Forward& f, const Folded& folded) {
  const Kernels& k = *kernels();
  const Products& p = *products();
  const Shape shape = shape_of(out_gradient);
  const std::int64_t width = shape.channels;
  const std::int64_t hidden = 4 * width;
  const std::int64_t chunk = chunk_rows(shape);
  const at::Tensor padded = padded_zeros(out_gradient);
  const PerThread project_bias(1, width, true);
  const PerThread project(width, hidden, true);
  const PerThread expand_bias(1, hidden, true);
  const PerThread expand(hidden, width, true);
  const PerThread hidden_scratch(chunk * shape.width, hidden, false);
  const PerThread normalised_scratch(chunk * shape.width, width, false);

  split_into_chunks(out_gradient.size(0) * shape.height, chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * shape.width;
    const std::int64_t pixels = (end - begin) * shape.width;
    const float* out = read(out_gradient) + first * width;
    const float* normalised = read(f.normalised) + first * width;
    float* hidden_gradient = hidden_scratch.mine();
    float* normalised_gradient = normalised_scratch.mine();
    k.column_sums(width, out, project_bias.mine(), 0, pixels);
    p.multiply_add(
        {out, 1, width, read(f.activated) + first * hidden, hidden, project.mine(), hidden, width, pixels, hidden});
    p.multiply({out, width, 1, read(folded.project), hidden, hidden_gradient, hidden, pixels, width, hidden});
    k.gelu_backward(hidden, read(f.slope) + first * hidden, hidden_gradient, expand_bias.mine(), 0, pixels);
    p.multiply_add({hidden_gradient, 1, hidden, normalised, width, expand.mine(), width, hidden, pixels, width});
    p.multiply(
        {hidden_gradient, hidden, 1, read(folded.expand), width, normalised_gradient, width, pixels, hidden, width});
    k.normalise_backward(shape, normalised_gradient, read(f.normalised), read(f.inverse_deviation), data(padded), begin,
                         end);
  });
  return {project_bias.sum()[0], project.sum(), expand_bias.sum()[0], expand.sum(), padded};
}

struct ConvolutionGradients {
  at::Tensor input;
  at::Tensor taps;  // [49 weights and the bias, w]
};

ConvolutionGradients back_through_convolution(const at::Tensor& out_gradient, const at::Tensor& padded,
                                              const at::Tensor& padded_gradient, const at::Tensor& depthwise) {
  const Kernels& k = *kernels();
  const Shape shape = shape_of(out_gradient);
  const PerThread taps(kTaps * kTaps + 1, shape.channels, true);
  // The gradient of a convolution is a convolution with the flipped kernel.
  const at::Tensor turned = by_tap(depthwise.flip({2, 3}));
  const at::Tensor input = at::empty_like(out_gradient);
  split_into_chunks(out_gradient.size(0) * shape.height, chunk_rows(shape), [&](std::int64_t begin, std::int64_t end) {
    k.weight_gradient(shape, read(padded), read(padded_gradient), taps.mine(), begin, end);
    k.convolve_add(shape, read(padded_gradient), read(turned), read(out_gradient), data(input), begin, end);
  });
  return {input, taps.sum()};
}

class FastBlock : public torch::autograd::Function<FastBlock> {
 public:
  // Autograd functions take each tensor as a separate argument.
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
    const Forward f = {{}, saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor &depthwise = saved[5], &norm = saved[6], &norm_bias = saved[7], &expand = saved[8],
                     &project = saved[9], &project_bias = saved[10], &gamma = saved[11];
    const at::Tensor out_gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const Backward b = back_to_convolution(out_gradient, f, fold(expand, norm, project, gamma));
    const ConvolutionGradients c = back_through_convolution(out_gradient, f.padded, b.padded, depthwise);
    return {c.input,
            c.taps.narrow(0, 0, kTaps * kTaps).t().reshape(depthwise.sizes()),
            c.taps[kTaps * kTaps],
            (b.expand * expand).sum(0),
            at::mv(expand.t(), b.expand_bias),
            at::addr(b.expand * norm, b.expand_bias, norm_bias),
            b.expand_bias,
            b.project * gamma,
            b.project_bias * gamma,
            ((b.project * project).sum() + at::dot(b.project_bias, project_bias)).view({1})};
  }
};

}  // namespace

bool fast_block_fits(const at::Tensor& x, const BlockWeights& weights) {
  return kernels() != nullptr && products() != nullptr && x.is_cpu() && x.scalar_type() == at::kFloat &&
         weights.gamma.is_cpu() && x.is_contiguous(at::MemoryFormat::ChannelsLast) && x.size(1) % kLanes == 0 &&
         !at::autocast::is_autocast_enabled(at::kCPU) && !train::tracing_a_loss();
}

at::Tensor fast_block(const at::Tensor& x, const BlockWeights& w) {
  if (!at::GradMode::is_enabled()) {
    return run_forward(x, w, false).output;
  }
  return FastBlock::apply(x, w.depthwise, w.depthwise_bias, w.norm, w.norm_bias, w.expand, w.expand_bias, w.project,
                          w.project_bias, w.gamma);
}

}  // namespace unidle::workloads::superres
