// Whole steps as captured graphs, trusted once they do what the same step does without.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unidle/train/step/graph_capture.h"

namespace unidle::train {

/// What the micro-batches of a step are made from, in order. Of one shape there are two at most: the same memory comes
/// again in turns.
using StepFields = std::vector<std::vector<at::Tensor>>;

/// Does the steps of a run: the first few of each shape as they are, then as a replay of a graph that reads its fields
/// where they lie. Once anything is wrong with a graph, all steps are done as they are. The host waits for the device
/// only while a graph is made. One thread.
class StepGraphs {
 public:
  struct Work {
    /// A whole step, without waiting for the device. Returns its loss, detached.
    std::function<at::Tensor(const StepFields&)> step;
    /// Drops what an interrupted step() left behind.
    std::function<void()> drop_gradients;
    /// Of what a step changes: the weights, and all the rest. The same tensors in every call.
    std::function<std::vector<at::Tensor>()> weights;
    std::function<std::vector<at::Tensor>()> others;
  };
  /// `capture` must outlive this. `against`: why every step is to be done as it is; empty unless it is to.
  StepGraphs(GraphCapture* capture, std::string against, at::Device device, Work work);

  /// One step. Throws what it throws without a graph.
  at::Tensor run(const StepFields& fields);
  /// Their memory too.
  void drop_graphs() { shapes_.clear(); }
  /// The same, and steps are done as they are from now on.
  void give_up(std::string reason);

  /// Whether a graph has memory of its own.
  bool hold_memory() const;

  /// Whether steps are captured, or still may be.
  bool on() const { return reason_.empty(); }
  /// Why not.
  const std::string& reason() const { return reason_; }
  /// Steps that were replays.
  std::int64_t replays() const { return replays_; }
  /// Steps that were also captured, or tried to be.
  std::int64_t captures() const { return captures_; }

 private:
  struct Graph {
    StepFields fields;  // what it reads
    at::Tensor loss;    // what it writes
    std::unique_ptr<CapturedGraph> captured;
  };
  struct Shape {
    StepFields fields;                           // that had it first
    int steps_before = 0;                        // since it was captured in vain
    int wait = 0;                                // so many of them come before a capture
    std::vector<std::unique_ptr<Graph>> graphs;  // trusted: the first one was found to do what the step does
  };
  /// A copy of all that a step changes, on the host.
  struct State {
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> others;
    at::Tensor random;  // of the device's generator
  };
  /// The one of these fields, made if need be; null where there are too many.
  Shape* shape_of(const StepFields& fields);
  void tell_of_many_shapes();
  std::unique_ptr<Graph> capture(const StepFields& fields);
  /// The step with these fields twice: as it is, and captured and replayed. What is trusted is left behind. Throws what
  /// the step as it is throws: trouble with the replay, or with the comparison, ends graphs.
  at::Tensor first_replay(Shape& shape, const StepFields& fields);
  /// Captured and replayed, with other memory than the first.
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
