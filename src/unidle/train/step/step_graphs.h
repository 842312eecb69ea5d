// Captures whole steps as graphs, which are trusted once they match the same step without a graph.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unidle/train/step/graph_capture.h"

namespace unidle::train {

/// The inputs of a step's micro-batches, in order. Each shape has at most two sets of them: the memory is
/// double-buffered.
using StepFields = std::vector<std::vector<at::Tensor>>;

/// Runs the steps of a run: the first few of each shape normally, then by replaying a graph that reads its fields in
/// place. After any fault in a graph all steps run normally. The host waits for the device only while a graph is
/// captured. One thread.
class StepGraphs {
 public:
  struct Work {
    /// A whole step, without waiting for the device. Returns its loss, detached.
    std::function<at::Tensor(const StepFields&)> step;
    /// Drops the gradients that an interrupted step() left behind.
    std::function<void()> drop_gradients;
    /// The tensors that a step changes: the weights, and all others. The same tensors in every call.
    std::function<std::vector<at::Tensor>()> weights;
    std::function<std::vector<at::Tensor>()> others;
  };
  /// `capture` must outlive this. `against`: the reason to run every step normally; empty to use graphs.
  StepGraphs(GraphCapture* capture, std::string against, at::Device device, Work work);

  /// One step. Throws what the step without a graph throws.
  at::Tensor run(const StepFields& fields);
  /// Releases their memory too.
  void drop_graphs() { shapes_.clear(); }
  /// The same; all later steps run normally.
  void give_up(std::string reason);

  /// Whether a graph owns memory.
  bool hold_memory() const;

  /// Whether steps are captured or may be later.
  bool on() const { return reason_.empty(); }
  /// The reason when not.
  const std::string& reason() const { return reason_; }
  /// Steps that were replayed.
  std::int64_t replays() const { return replays_; }
  /// Steps in which a capture was attempted.
  std::int64_t captures() const { return captures_; }

 private:
  struct Graph {
    StepFields fields;  // its inputs
    at::Tensor loss;    // its output
    std::unique_ptr<CapturedGraph> captured;
  };
  struct Shape {
    StepFields fields;                           // the first that had this shape
    int steps_before = 0;                        // since a failed capture
    int wait = 0;                                // number of such steps required before the next capture
    std::vector<std::unique_ptr<Graph>> graphs;  // the first one is compared with the plain step before it is trusted
  };
  /// A copy, on the host, of everything that a step changes.
  struct State {
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> others;
    at::Tensor random;  // state of the device's generator
  };
  /// The shape of these fields, created if needed; null when there are too many.
  Shape* shape_of(const StepFields& fields);
  void tell_of_many_shapes();
  std::unique_ptr<Graph> capture(const StepFields& fields);
  /// Runs the step with these fields twice: normally, and captured and replayed. Leaves the trusted result. Throws what
  /// the normal step throws; an error in the replay or the comparison ends the use of graphs.
  at::Tensor first_replay(Shape& shape, const StepFields& fields);
  /// Captures and replays with other memory than the first.
  at::Tensor further_replay(Shape& shape, const StepFields& fields);
  State state() const;
  void put_back(const State& state) const;
  at::Tensor replay(const Graph& graph);

  GraphCapture* capture_;
  std::string reason_;
  at::Device device_;
  Work work_;
  std::vector<std::unique_ptr<Shape>> shapes_;
  std::int64_t replays_ = 0;
  std::int64_t captures_ = 0;
  bool told_of_many_shapes_ = false;
};

}  // namespace unidle::train
