#include "workloads/recsys/fast_loss.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/common/products.h"
#include "workloads/recsys/layer_kernels.h"
#include "workloads/recsys/model.h"

namespace unidle::workloads::recsys {

/// The rows of a batch that one worker processes.
struct FastLoss::Rows {
  const float* features;
  const float* targets;
  std::int64_t count;
  float share;  // weight of one row in the gradients
};

namespace {

constexpr std::int64_t kChunk = 64;       // rows that stay in the core's cache through all layers and back
constexpr std::int64_t kFewestRows = 16;  // per woken thread

std::int64_t in_lanes(std::int64_t columns) { return (columns + kLanes - 1) / kLanes * kLanes; }
std::size_t chunk_of(std::int64_t columns) { return static_cast<std::size_t>(kChunk * columns); }
const float* values_of(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// A prediction is the first of each kLanes `values` plus the bias. Returns the sum over the rows; writes the gradients
/// of the mean over the batch.
double squared_error(std::int64_t count, const float* values, float bias, const float* targets, float share,
                     float* gradient) {
  double sum = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    const float error = values[row * kLanes] + bias - std::log1p(targets[row * kTargets + kPlayTime] * 1e-3F);
    sum += static_cast<double>(error) * error;
    gradient[row] = 2 * share * error;
  }
  return sum;
}

double cross_entropy(std::int64_t count, const float* values, float bias, const float* targets, float share,
                     float* gradient) {
  double sum = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    const float logit = values[row * kLanes] + bias;
    const float click = targets[row * kTargets + kClick];
    const float power = std::exp(-std::abs(logit));
    const float smaller = power / (1 + power);  // the smaller of the probabilities of click and no click
    sum += static_cast<double>((1 - click) * logit - std::min(logit, 0.0F)) + static_cast<double>(std::log1p(power));
    gradient[row] = share * ((logit < 0 ? smaller : 1 - smaller) - click);
  }
  return sum;
}

}  // namespace

FastLoss::FastLoss(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  for (std::size_t place = 0; place < parameters_.size(); place += 2) {
    const at::Tensor& weight = parameters_[place];
    layers_.push_back({weight.size(1), weight.size(0), in_lanes(weight.size(0)), place, {}});
    layers_.back().panels.resize(static_cast<std::size_t>(layers_.back().columns * layers_.back().inputs));
    const bool ends = weight.size(0) == 1;
    click_ = ends && click_ == 0 ? layers_.size() : click_;
    widths_fit_ &= ends || weight.size(0) % kLanes == 0;
  }
}

bool FastLoss::fits(const at::Tensor& features, const at::Tensor& targets) const {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  };
  return layer_kernels() != nullptr && products() != nullptr && widths_fit_ &&
         !at::autocast::is_autocast_enabled(at::kCPU) && plain(features) && features.size(0) > 0 &&
         !features.requires_grad() && plain(targets) && targets.size(1) == kTargets &&
         std::all_of(parameters_.begin(), parameters_.end(),
                     [&](const at::Tensor& parameter) { return plain(parameter) && parameter.requires_grad(); });
}

void FastLoss::prepare_workers(std::int64_t count, const std::vector<at::Tensor>& gradients) {
  while (workers_.size() < static_cast<std::size_t>(count)) {
    Worker& worker = workers_.emplace_back();
    std::int64_t widest = in_lanes(layers_[0].inputs);
    worker.features.resize(chunk_of(widest));
    for (const Layer& layer : layers_) {
      worker.values.emplace_back(chunk_of(layer.columns));
      widest = std::max(widest, layer.columns);
    }
    worker.gradient.resize(chunk_of(widest));
    worker.gradient_before.resize(chunk_of(widest));
    worker.sums.resize(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size() && workers_.size() > 1; ++i) {
      worker.own.emplace_back(static_cast<std::size_t>(parameters_[i].numel()));
      worker.sums[i] = worker.own[i].data();
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    workers_[0].sums[i] = gradients[i].mutable_data_ptr<float>();
  }
}

at::Tensor FastLoss::learn(const at::Tensor& features, const at::Tensor& targets, double share) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) {
    gradients.emplace_back(at::detail::empty_cpu(parameter.sizes(), at::kFloat));  // bypasses the dispatcher
  }
  const std::int64_t rows = features.size(0);
  const std::int64_t workers = std::clamp<std::int64_t>(rows / kFewestRows, 1, at::get_num_threads());
  const std::int64_t inputs = layers_[0].inputs;
  prepare_workers(workers, gradients);
  for (Layer& layer : layers_) {
    layer_kernels()->pack(layer.outputs, layer.inputs, values_of(parameters_[layer.place]), layer.panels.data());
  }
  at::parallel_for(0, workers, 1, [&](std::int64_t first_worker, std::int64_t last_worker) {
    for (std::int64_t i = first_worker; i < last_worker; ++i) {
      Worker& worker = workers_[static_cast<std::size_t>(i)];
      worker.loss = 0;
      const std::int64_t begin = rows * i / workers;
      const std::int64_t end = rows * (i + 1) / workers;
      for (std::int64_t row = begin; row < end; row += kChunk) {
        learn_from(worker,
                   {values_of(features) + row * inputs, values_of(targets) + row * kTargets,
                    std::min(kChunk, end - row), static_cast<float>(share / static_cast<double>(rows))},
                   row == begin);
      }
    }
  });
  double loss = workers_[0].loss;
  for (std::int64_t i = 1; i < workers; ++i) {  // fixed order: deterministic sums
    const Worker& worker = workers_[static_cast<std::size_t>(i)];
    loss += worker.loss;
    for (std::size_t place = 0; place < worker.own.size(); ++place) {
      layer_kernels()->add(parameters_[place].numel(), worker.sums[place], workers_[0].sums[place]);
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    gradient = gradient.defined() ? gradient + gradients[i] : std::move(gradients[i]);
  }
  return at::scalar_tensor(loss / static_cast<double>(rows), features.options());
}

void FastLoss::learn_from(Worker& worker, const Rows& rows, bool first) const {
  const std::int64_t inputs = layers_[0].inputs;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    std::copy_n(rows.features + row * inputs, inputs, worker.features.data() + row * in_lanes(inputs));
  }
  const auto learn_one = [&](std::size_t first_layer, std::size_t last_layer, auto loss_of_rows) {
    const Layer& last = layers_[last_layer];
    forward(worker, first_layer, last_layer, rows.count);
    worker.loss += loss_of_rows(rows.count, worker.values[last_layer].data(), *values_of(parameters_[last.place + 1]),
                                rows.targets, rows.share, worker.gradient.data());
    backward(worker, first_layer, last_layer, rows.count, first);
  };
  learn_one(0, click_ - 1, squared_error);
  learn_one(click_, layers_.size() - 1, cross_entropy);
}

void FastLoss::forward(Worker& worker, std::size_t first_layer, std::size_t last_layer, std::int64_t rows) const {
  const float* in = worker.features.data();
  std::int64_t in_row = in_lanes(layers_[0].inputs);
  for (std::size_t i = first_layer; i <= last_layer; ++i) {
    const Layer& layer = layers_[i];
    float* out = worker.values[i].data();
    for (std::int64_t column = 0; column < layer.columns; column += kPanel) {
      const std::int64_t width = std::min(kPanel, layer.columns - column);
      products()->multiply({in, in_row, 1, layer.panels.data() + column * layer.inputs, width, out + column,
                            layer.columns, rows, layer.inputs, width});
    }
    if (i < last_layer) {
      layer_kernels()->activate(rows, layer.columns, values_of(parameters_[layer.place + 1]), out);
    }
    in = out;
    in_row = layer.columns;
  }
}

void FastLoss::backward(Worker& worker, std::size_t first_layer, std::size_t last_layer, std::int64_t rows,
                        bool first) const {
  for (std::size_t i = first_layer; i <= last_layer && first; ++i) {
    std::fill_n(worker.sums[layers_[i].place + 1], layers_[i].outputs, 0.0F);
  }
  float* last_bias = worker.sums[layers_[last_layer].place + 1];
  for (std::int64_t row = 0; row < rows; ++row) {
    *last_bias += worker.gradient[static_cast<std::size_t>(row)];
  }
  const auto weights = first ? products()->multiply : products()->multiply_add;
  for (std::size_t i = last_layer;; --i) {
    const Layer& layer = layers_[i];
    const float* in = i == first_layer ? worker.features.data() : worker.values[i - 1].data();
    const float* gradient = worker.gradient.data();
    weights({gradient, 1, layer.outputs, in, in_lanes(layer.inputs), worker.sums[layer.place], layer.inputs,
             layer.outputs, rows, layer.inputs});
    if (i == first_layer) {
      break;
    }
    products()->multiply({gradient, layer.outputs, 1, values_of(parameters_[layer.place]), layer.inputs,
                          worker.gradient_before.data(), layer.inputs, rows, layer.outputs, layer.inputs});
    layer_kernels()->activate_backward(rows, layer.inputs, in, worker.gradient_before.data(),
                                       worker.sums[layers_[i - 1].place + 1]);
    worker.gradient.swap(worker.gradient_before);
  }
}

}  // namespace unidle::workloads::recsys
