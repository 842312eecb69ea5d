#include "unidle/train/step/step_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "unidle/base/log.h"
#include "unidle/base/split.h"
#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

namespace {

/// Libraries choose algorithms and allocate workspaces in the first steps; torch.cuda.make_graphed_callables uses three
/// warm-up steps as well.
constexpr int kStepsBefore = 3;
/// Shapes beyond this number are rare: capturing them costs more than it gains.
constexpr std::size_t kMostShapes = 16;
/// Double-buffered batches.
constexpr std::size_t kMostPlaces = 2;
/// Relative to the change of the weights in one step. Kernels with nondeterministic summation differ by less than a
/// hundredth of it; a graph that keeps an old value or omits a part, by about all of it.
constexpr double kMostDifference = 0.05;
/// Rounding of weights that the step hardly changes.
constexpr double kRounding = 1e-6;
constexpr double kMostLossDifference = 0.01;

template <typename Same>
bool alike(const StepFields& a, const StepFields& b, const Same& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  });
}

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) { return a.const_data_ptr() == b.const_data_ptr(); }

/// On the host, so that a comparison takes no device memory from the step.
std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
  return copies;
}

void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].detach().copy_(from[i]);
  }
}

/// The 2-norm over all tensors.
double norm(const std::vector<at::Tensor>& tensors) {
  double squares = 0;
  for (const at::Tensor& tensor : tensors) {
    const double one = at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>();
    squares += one * one;
  }
  return std::sqrt(squares);
}

/// The 2-norm of a - b.
double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double one = at::linalg_vector_norm(a[i].to(at::kDouble) - b[i].to(at::kDouble)).item<double>();
    squares += one * one;
  }
  return std::sqrt(squares);
}

/// Compares a replayed step with the same step without a graph.
class Comparison {
 public:
  /// `replayed` and `plain`: the weights after the step; `before`: those before it. All on the host. Waits for the
  /// losses.
  Comparison(const at::Tensor& loss, const at::Tensor& plain_loss, const std::vector<at::Tensor>& replayed,
             const std::vector<at::Tensor>& plain, const std::vector<at::Tensor>& before)
      : difference_(distance(replayed, plain)),
        change_(distance(plain, before)),
        size_(norm(before)),
        loss_(loss.item<double>()),
        plain_loss_(plain_loss.item<double>()) {}

  /// Describes the fault of the replay; empty when there is none.
  std::string fault() const {
    // Written so that NaN counts as a fault.
    if (!(difference_ <= kMostDifference * change_ + kRounding * size_)) {
      return fmt::format("its weights are {:.2g} from those of the same step without it, which changes them by {:.2g}",
                         difference_, change_);
    }
    const bool both_not_finite = !std::isfinite(loss_) && !std::isfinite(plain_loss_);
    const double most = kMostLossDifference * std::abs(plain_loss_) + std::numeric_limits<float>::min();
    if (!both_not_finite && !(std::abs(loss_ - plain_loss_) <= most)) {
      return fmt::format("its loss is {:.6g}, that of the same step without it {:.6g}", loss_, plain_loss_);
    }
    return "";
  }
  /// Whether the comparison is conclusive: a step skipped for non-finite gradients changes nothing.
  bool tells() const { return change_ > 0 && std::isfinite(plain_loss_); }

 private:
  double difference_;
  double change_;  // of the weights in the step
  double size_;    // of the weights
  double loss_;
  double plain_loss_;
};

}  // namespace

StepGraphs::StepGraphs(GraphCapture* capture, std::string against, at::Device device, Work work)
    : capture_(capture), reason_(std::move(against)), device_(device), work_(std::move(work)) {}

at::Tensor StepGraphs::run(const StepFields& fields) {
  Shape* shape = on() ? shape_of(fields) : nullptr;
  if (shape == nullptr || shape->steps_before < shape->wait) {
    if (shape != nullptr) {
      ++shape->steps_before;
    }
    return work_.step(fields);
  }
  for (const auto& graph : shape->graphs) {
    if (alike(graph->fields, fields, same_memory)) {
      return replay(*graph);
    }
  }
  if (shape->graphs.empty()) {
    return first_replay(*shape, fields);
  }
  return shape->graphs.size() < kMostPlaces ? further_replay(*shape, fields) : work_.step(fields);
}

StepGraphs::Shape* StepGraphs::shape_of(const StepFields& fields) {
  for (const auto& shape : shapes_) {
    if (alike(shape->fields, fields, same_shape)) {
      return shape.get();
    }
  }
  if (shapes_.size() == kMostShapes) {
    tell_of_many_shapes();
    return nullptr;
  }
  auto shape = std::make_unique<Shape>();
  shape->fields = fields;
  shape->wait = kStepsBefore;
  return shapes_.emplace_back(std::move(shape)).get();
}

void StepGraphs::tell_of_many_shapes() {
  if (!told_of_many_shapes_) {
    told_of_many_shapes_ = true;
    spdlog::warn(
        "compile.mode: graph: batches have more than {} shapes, and steps of further ones run without a graph (give "
        "batches of fewer shapes, by data.group or by padding, or leave out compile.mode)",
        kMostShapes);
  }
}

std::unique_ptr<StepGraphs::Graph> StepGraphs::capture(const StepFields& fields) {
  ++captures_;
  auto made = std::make_unique<Graph>();
  made->fields = fields;
  made->captured = capture_->capture([this, graph = made.get()] { graph->loss = work_.step(graph->fields); });
  return made;
}

at::Tensor StepGraphs::replay(const Graph& graph) {
  graph.captured->replay();
  ++replays_;
  return graph.loss.clone();  // the next replay overwrites it
}

// The plain step runs before the capture: its memory and the graph's are never needed at the same time.
at::Tensor StepGraphs::first_replay(Shape& shape, const StepFields& fields) {
  State before;
  try {
    before = state();
  } catch (const std::exception& failure) {
    give_up(fmt::format("it cannot be compared: {}", first_line(failure.what())));
    return work_.step(fields);
  }
  const at::Tensor plain_loss = work_.step(fields);
  State after;
  std::unique_ptr<Graph> graph;
  try {
    after = state();
    graph = capture(fields);
  } catch (const std::exception& failure) {
    give_up(fmt::format("it cannot be captured: {}", first_line(failure.what())));
    work_.drop_gradients();
    return plain_loss;
  }
  put_back(before);
  std::string fault;
  try {
    const at::Tensor loss = replay(*graph);
    const Comparison found(loss, plain_loss, copies_of(work_.weights()), after.weights, before.weights);
    fault = found.fault();
    if (fault.empty()) {
      if (found.tells()) {
        shape.graphs.push_back(std::move(graph));
      } else {  // try later; until then steps need the memory
        shape.steps_before = 0;
        shape.wait *= 2;  // steps that change nothing may go on for long
      }
      return loss;
    }
  } catch (const std::exception& failure) {
    fault = fmt::format("it cannot be replayed: {}", first_line(failure.what()));
  }
  give_up(std::move(fault));
  put_back(after);
  return plain_loss;
}

at::Tensor StepGraphs::further_replay(Shape& shape, const StepFields& fields) {
  try {
    shape.graphs.push_back(capture(fields));
  } catch (const std::exception& failure) {
    give_up(fmt::format("it cannot be captured: {}", first_line(failure.what())));
    work_.drop_gradients();
    return work_.step(fields);
  }
  return replay(*shape.graphs.back());
}

StepGraphs::State StepGraphs::state() const {
  return {.weights = copies_of(work_.weights()), .others = copies_of(work_.others()), .random = random_state(device_)};
}

void StepGraphs::put_back(const State& state) const {
  copy_all(work_.weights(), state.weights);
  copy_all(work_.others(), state.others);
  set_random_state(device_, state.random);
}

bool StepGraphs::hold_memory() const {
  return std::ranges::any_of(shapes_, [](const auto& shape) { return !shape->graphs.empty(); });
}

void StepGraphs::give_up(std::string reason) {
  reason_ = std::move(reason);
  shapes_.clear();
  spdlog::warn("compile.mode: graph is off from here on: {}", reason_);
}

}  // namespace unidle::train
