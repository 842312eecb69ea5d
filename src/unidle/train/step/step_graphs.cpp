#include "unidle/train/step/step_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/log.h"
#include "unidle/base/split.h"
#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

namespace {

/// Libraries choose their algorithms and make their workspaces in the first steps; torch.cuda.make_graphed_callables
/// takes three as well.
constexpr int kStepsBefore = 3;
/// Shapes beyond so many are rare ones: capturing costs more than it gives.
constexpr std::size_t kMostGraphs = 16;
/// Of what one step changes in the weights. Kernels that add in any order differ by less than a hundredth of it; a
/// graph that has kept an old value, or leaves out a part, by about all of it.
constexpr double kMostDifference = 0.05;
/// Rounding of weights that the step hardly changes.
constexpr double kRounding = 1e-6;
constexpr double kMostLossDifference = 0.01;

bool same_shape(const StepFields& a, const StepFields& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const at::Tensor& one, const at::Tensor& other) {
      return one.dtype() == other.dtype() && one.sizes() == other.sizes() && one.strides() == other.strides();
    });
  });
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().clone());
  }
  return copies;
}

void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].detach().copy_(from[i]);
  }
}

/// The 2-norm of a - b over all tensors, on the device.
at::Tensor distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  std::vector<at::Tensor> norms;
  for (std::size_t i = 0; i < a.size(); ++i) {
    norms.push_back(at::linalg_vector_norm(a[i].to(at::kDouble) - b[i].to(at::kDouble)));
  }
  return at::linalg_vector_norm(at::stack(norms));
}

at::Tensor norm(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& tensor : tensors) {
    norms.push_back(at::linalg_vector_norm(tensor.to(at::kDouble)));
  }
  return at::linalg_vector_norm(at::stack(norms));
}

/// A replayed step against the same step without a graph. Waits for the device.
class Comparison {
 public:
  /// `replayed` and `plain`: the weights after the step. `before`: those before it.
  Comparison(const at::Tensor& loss, const at::Tensor& plain_loss, const std::vector<at::Tensor>& replayed,
             const std::vector<at::Tensor>& plain, const std::vector<at::Tensor>& before) {
    const at::Tensor figures = at::stack({distance(replayed, plain), distance(plain, before), norm(before),
                                          loss.to(at::kDouble), plain_loss.to(at::kDouble)})
                                   .to(at::kCPU)
                                   .contiguous();
    const double* values = figures.const_data_ptr<double>();
    difference_ = values[0];
    change_ = values[1];
    size_ = values[2];
    loss_ = values[3];
    plain_loss_ = values[4];
  }

  /// What is wrong with the replayed one; empty when nothing is.
  std::string fault() const {
    // Written so that what is no number is a fault.
    if (!(difference_ <= kMostDifference * change_ + kRounding * size_)) {
      return fmt::format("its weights are {:.2g} from those of the same step without it, which changes them by {:.2g}",
                         difference_, change_);
    }
    const bool both_not_finite = !std::isfinite(loss_) && !std::isfinite(plain_loss_);
    if (!both_not_finite && !(std::abs(loss_ - plain_loss_) <= kMostLossDifference * std::abs(plain_loss_))) {
      return fmt::format("its loss is {:.6g}, that of the same step without it {:.6g}", loss_, plain_loss_);
    }
    return "";
  }
  /// Whether it says anything: a step that is left out, since its gradients are not finite, changes nothing.
  bool tells() const { return change_ > 0 && std::isfinite(plain_loss_); }

 private:
  double difference_ = 0;
  double change_ = 0;  // of the weights, by the step
  double size_ = 0;    // of the weights
  double loss_ = 0;
  double plain_loss_ = 0;
};

}  // namespace

StepGraphs::StepGraphs(GraphCapture* capture, std::string against, at::Device device, Work work)
    : capture_(capture), reason_(std::move(against)), device_(device), work_(std::move(work)) {}

at::Tensor StepGraphs::run(const StepFields& fields) {
  Graph* graph = on() ? graph_for(fields) : nullptr;
  if (graph == nullptr || graph->steps_before < kStepsBefore) {
    if (graph != nullptr) {
      ++graph->steps_before;
    }
    return work_.step(fields);
  }
  if (graph->captured == nullptr && !capture(*graph)) {
    return work_.step(fields);
  }
  return graph->trusted ? replay(*graph, fields) : compare(*graph, fields);
}

StepGraphs::Graph* StepGraphs::graph_for(const StepFields& fields) {
  for (const auto& graph : graphs_) {
    if (same_shape(graph->fields, fields)) {
      return graph.get();
    }
  }
  if (graphs_.size() == kMostGraphs) {
    tell_of_many_shapes();
    return nullptr;
  }
  auto graph = std::make_unique<Graph>();
  for (const auto& micro_batch : fields) {
    graph->fields.push_back(copies_of(micro_batch));
  }
  return graphs_.emplace_back(std::move(graph)).get();
}

void StepGraphs::tell_of_many_shapes() {
  if (!told_of_many_shapes_) {
    told_of_many_shapes_ = true;
    spdlog::warn(
        "compile.mode: graph: batches have more than {} shapes, and steps of further ones run without a graph (give "
        "batches of fewer shapes, by data.group or by padding, or leave out compile.mode)",
        kMostGraphs);
  }
}

bool StepGraphs::capture(Graph& graph) {
  try {
    graph.captured = capture_->capture([this, &graph] { graph.loss = work_.step(graph.fields); });
    return true;
  } catch (const std::exception& failure) {
    give_up(fmt::format("it cannot be captured: {}", first_line(failure.what())));
    work_.drop_gradients();
    return false;
  }
}

at::Tensor StepGraphs::replay(Graph& graph, const StepFields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    copy_all(graph.fields[i], fields[i]);
  }
  graph.captured->replay();
  ++replays_;
  return graph.loss.clone();  // the next replay writes it again
}

at::Tensor StepGraphs::compare(Graph& graph, const StepFields& fields) {
  State before;
  State after;
  try {
    before = state();
    after = state();  // the memory for it, before anything is done
  } catch (const std::exception& failure) {
    give_up(fmt::format("it cannot be compared: {}", first_line(failure.what())));
    return work_.step(fields);
  }
  const at::Tensor plain_loss = work_.step(fields);
  copy_all(after.weights, work_.weights());
  copy_all(after.others, work_.others());
  after.random = random_state(device_);
  put_back(before);
  std::string fault;
  try {
    const at::Tensor loss = replay(graph, fields);
    const Comparison found(loss, plain_loss, work_.weights(), after.weights, before.weights);
    fault = found.fault();
    if (fault.empty()) {
      graph.trusted = found.tells();
      return loss;
    }
  } catch (const std::exception& failure) {
    fault = fmt::format("it cannot be replayed: {}", first_line(failure.what()));
  }
  give_up(std::move(fault));
  put_back(after);
  return plain_loss;
}

StepGraphs::State StepGraphs::state() const {
  return {.weights = copies_of(work_.weights()), .others = copies_of(work_.others()), .random = random_state(device_)};
}

void StepGraphs::put_back(const State& state) const {
  copy_all(work_.weights(), state.weights);
  copy_all(work_.others(), state.others);
  set_random_state(device_, state.random);
}

void StepGraphs::give_up(std::string reason) {
  reason_ = std::move(reason);
  graphs_.clear();
  spdlog::warn("compile.mode: graph is off from here on: {}", reason_);
}

}  // namespace unidle::train
